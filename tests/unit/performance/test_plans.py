"""Plans of the compiler, from the HLO and from the listings of bundles."""

import os

import jax
import jax.numpy as jnp
import pytest

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.dumps import DumpFile, Dumps
from pallas_rungs.compilers.outcome import CompilerOutcome
from pallas_rungs.ir.errors import IRError
from pallas_rungs.performance import plans
from pallas_rungs.performance.plans import NO_FIGURE, Plan, compiled_with, longest_plan

HLO = """HloModule jit_call

%fused (p: f32[2,8,8]) -> f32[2,8,8] {
  ROOT %wide = f32[2,8,8]{2,1,0:T(8,128)} negate(%p), metadata={}
}

ENTRY %main (a: f32[2,8,8]) -> (f32[2,8], f32[2,8,8]) {
  %a = f32[2,8,8]{2,1,0:T(8,128)} parameter(0)
  %wide = f32[2,8,8]{2,1,0:T(8,128)} broadcast(%c), dimensions={}
  %mask = pred[2,8,8]{2,1,0:T(8,128)(4,1)S(1)} fusion(), kind=kLoop
  %soft.1 = (f32[2,8]{1,0:T(2,128)S(1)}, f32[2,8,8]{2,1,0:T(8,128)}) fusion(%mask, %wide, %a), \
kind=kOutput, calls=%fused, backend_config={"window_config":{"estimated_cycles":"1113162"},\
"convolution_algorithm_config":{"emitter":"EmitSoft"}}
  ROOT %out = f32[2,8,8]{2,1,0:T(8,128)} copy(%a)
}
"""

REMARK = """/*
base_bounds: (2, 4)
window_bounds: (1, 4)
iteration_bounds: (2, {})
element_size_in_bytes: 256 */"""


def listing(inner: int) -> str:
    remark = REMARK.format(inner)
    return f"""
     0   :  {{ %s1_s0 = smov 0 }}
   0x1   : {{ %5 = dma.hbm_to_vmem [thread:$0]  %s7_s3, 32, %s8_s4 {remark} }}
   0x2   : {{ %6 = dma.vmem_to_hbm [thread:$0]  %s9_s5, 32 {remark} }}
"""


def dumps(hlo: str = HLO, **programs: str) -> Dumps:
    files = tuple(
        DumpFile("packed bundles", name.replace("_", "."), "", 0, text)
        for name, text in programs.items()
    )
    return Dumps(CompilerOutcome("compiled", "", "", hlo=hlo), files)


def test_the_plan_is_of_the_program_that_reads_most() -> None:
    plan = longest_plan(dumps(out=listing(1), soft_1=listing(8)))
    assert plan.program == "soft.1"
    assert plan.read_bytes == 2 * 8 * 4 * 256  # what it writes is not read
    assert (plan.cycles, plan.emitter) == (1113162, "EmitSoft")
    assert plan.operands == ("fusion pred[2,8,8]", "broadcast f32[2,8,8]", "parameter f32[2,8,8]")
    assert Plan.from_json(plan.to_json()) == plan
    assert longest_plan(dumps(out=listing(9), soft_1=listing(8))).program == "out"


def test_no_figure_of_the_compiler_is_told_from_none_at_all() -> None:
    text = HLO.replace("1113162", str(NO_FIGURE))
    assert longest_plan(dumps(text, soft_1=listing(8))).cycles == NO_FIGURE
    silent = longest_plan(dumps(out=listing(8)))
    assert (silent.cycles, silent.emitter) == (0, "")


def test_a_plan_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(IRError, match="expected a program that copies windows from HBM"):
        longest_plan(dumps(out="     0   :  { %s1_s0 = smov 0 }\n"))
    with pytest.raises(IRError, match=r"expected an instruction %other in ENTRY, found none"):
        longest_plan(dumps(other=listing(8)))
    with pytest.raises(IRError, match=r"expected the operands of %soft.1"):
        longest_plan(dumps(HLO.replace("fusion(%mask, %wide, %a)", "?"), soft_1=listing(8)))
    with pytest.raises(IRError, match=r"expected type and opcode of %wide"):
        longest_plan(dumps(HLO.replace("broadcast(", "?"), soft_1=listing(8)))


@pytest.mark.parametrize(
    ("before", "limit", "want"),
    [
        ("", 24, "--xla_tpu_scoped_vmem_limit_kib=24576"),
        ("--other=1", 1, "--other=1 --xla_tpu_scoped_vmem_limit_kib=1024"),
        ("--other=1", None, "--other=1"),
        (None, None, None),
    ],
)
def test_the_limit_is_a_flag_for_one_program(
    monkeypatch: pytest.MonkeyPatch, before: str | None, limit: int | None, want: str | None
) -> None:
    monkeypatch.delenv(libtpu.FLAGS_VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(libtpu.FLAGS_VARIABLE, before)
    seen: list[str | None] = []

    def compile_for_estimate(*_: object, **__: object) -> Dumps:
        seen.append(os.environ.get(libtpu.FLAGS_VARIABLE))
        return dumps(soft_1=listing(8))

    monkeypatch.setattr(plans, "compile_for_estimate", compile_for_estimate)
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    program, found = compiled_with(jnp.negative, x, chip="v5e", vmem_mib=limit)
    assert program.arguments == ("f32[8,128]",)
    assert found.outcome.kind == "compiled"
    assert seen == [want]
    assert os.environ.get(libtpu.FLAGS_VARIABLE) == before
