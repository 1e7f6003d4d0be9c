"""Reading optimised HLO: buffers, launches, and bytes to and from main memory."""

import jax
import jax.numpy as jnp
import pytest

from pallas_rungs.ir.hlo import MAIN_MEMORY, VMEM, Buffer, entry, traffic
from pallas_rungs.ladder.optimised import hlo_for_cpu

# Made up in the form that the TPU's compiler prints: an array is copied to VMEM, reduced there, and
# scaled with a scalar; the sum goes out beside a quarter that was cut off by a copy of its own.
F, B = "f32[16,256]{1,0:T(8,128)}", "bf16[4,256]{1,0:T(8,128)(2,1)}"
F_VMEM, PART = "f32[16,256]{1,0:T(8,128)S(1)}", "f32[4,256]{1,0:T(8,128)S(1)}"
LISTING = f"""HloModule jit_f, is_scheduled=true

%fused (a: f32[16,256]) -> f32[16] {{
  %a = {F_VMEM} parameter(0)
  ROOT %r = f32[16]{{0:T(128)}} reduce(%a), dimensions={{1}}
}}

ENTRY %main (x: f32[16,256]) -> (f32[16], bf16[4,256]) {{
  %constant.1 = f32[]{{:T(128)}} constant(2)
  %x = {F} parameter(0), sharding={{mesh[], [{{}}, {{}}]}}, metadata={{op_name="x"}}
  %copy-start = ({F_VMEM}, {F}, u32[]{{:S(2)}}) copy-start(%x)
  %copy-done = {F_VMEM} copy-done(%copy-start)
  %slice-start = (({F}), {PART}, s32[]{{:S(2)}}) slice-start(%x), slice={{[0:4], [0:256]}}
  %slice-done = {PART} slice-done(%slice-start)
  %kernel = {B} custom-call(%slice-done), custom_call_target="tpu_custom_call"
  %fusion.1 = f32[16]{{0:T(128)}} fusion(%copy-done, %copy-done, %constant.1), kind=kLoop
  ROOT %tuple = (f32[16]{{0:T(128)}}, {B}) tuple(%fusion.1, %kernel)
}}
"""


def test_instructions_have_their_parts() -> None:
    by_name = {instruction.name: instruction for instruction in entry(LISTING)}
    names = "constant.1 x copy-start copy-done slice-start slice-done kernel fusion.1 tuple"
    assert " ".join(by_name) == names
    assert by_name["x"].results == (Buffer("f32", (16, 256), MAIN_MEMORY),)
    assert by_name["copy-done"].results == (Buffer("f32", (16, 256), VMEM),)
    assert by_name["fusion.1"].kind == "Loop"
    assert by_name["fusion.1"].operands == ("copy-done", "copy-done", "constant.1")
    assert by_name["kernel"].target == "tpu_custom_call"
    assert by_name["tuple"].results[1] == Buffer("bf16", (4, 256))


@pytest.mark.parametrize(
    ("buffer", "size", "text"),
    [
        (Buffer("f32", (16, 256)), 16384, "f32[16,256]"),
        (Buffer("bf16", (3,)), 6, "bf16[3]"),
        (Buffer("pred", (5,)), 5, "pred[5]"),
        (Buffer("s4", (3,)), 2, "s4[3]"),
        (Buffer("f8e4m3fn", (7,)), 7, "f8e4m3fn[7]"),
        (Buffer("f64", ()), 8, "f64[]"),
    ],
)
def test_bytes_of_a_buffer(buffer: Buffer, size: int, text: str) -> None:
    assert buffer.bytes == size
    assert str(buffer) == text


def test_main_memory_is_counted_and_vmem_is_free() -> None:
    counted = traffic(LISTING)
    assert counted.launches == 4  # two copies, the kernel, the fusion
    assert counted.read == 16 * 256 * 4 + 4 * 256 * 4
    assert counted.written == 16 * 4 + 4 * 256 * 2


def test_a_chain_of_elementwise_operations_is_one_launch_on_the_cpu() -> None:
    x = jax.ShapeDtypeStruct((64, 256), jnp.float32)
    counted = traffic(hlo_for_cpu(lambda x: jnp.tanh(2 * x + 1) * x, x))
    assert (counted.launches, counted.read, counted.written) == (1, 65536, 65536)


def test_an_array_that_two_launches_read_is_read_twice() -> None:
    text = LISTING.replace("%fusion.1 = f32[16]{0:T(128)} fusion(%copy-done, %copy-done",
                           "%fusion.1 = f32[16]{0:T(128)} fusion(%x, %copy-done")  # fmt: skip
    assert traffic(text).read == 2 * 16 * 256 * 4 + 4 * 256 * 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HloModule m\n", "no line that begins with ENTRY"),
        ("\nENTRY %main () -> f32[] {\n  nonsense\n}\n", "not an instruction of HLO: 'nonsense'"),
        ("\nENTRY %m () -> f32[] {\n  %x = (f32[] tuple(\n}\n", "a parenthesis is not closed"),
    ],
)
def test_text_that_is_no_hlo(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entry(text)
