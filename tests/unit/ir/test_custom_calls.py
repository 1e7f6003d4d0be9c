"""What stands in the custom calls of kernels, for each compiler."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxlib.mlir import ir

from pallas_rungs.ir import mosaic_gpu, triton
from pallas_rungs.ir.custom_calls import custom_calls, operations
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ladder.pretend import Pretend

X = jax.ShapeDtypeStruct((128, 128), jnp.float32)


def body(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    o_ref[...] = jnp.exp(x_ref[...])


def by_call(x: jax.Array, interpret: bool = False) -> jax.Array:
    result: jax.Array = pl.pallas_call(body, out_shape=X, interpret=interpret)(x)
    return result


def by_warpgroup(x: jax.Array) -> jax.Array:
    result: jax.Array = plgpu.kernel(body, out_type=X)(x)
    return result


def lowered(function: Callable[..., Any], chip: str, platform: str) -> Any:
    with Pretend(chip, 1).applied(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Pallas on Triton as a whole
        return jax.jit(function).trace(X).lower(lowering_platforms=(platform,))


@pytest.mark.parametrize(
    ("function", "chip", "platform", "target", "exponentials"),
    [
        (by_call, "v5e", "tpu", "tpu_custom_call", {"math.exp": 1}),
        (by_call, "h100", "cuda", "__gpu$xla.gpu.triton", {"tt.extern_elementwise": 1}),
        # What one of 128 threads does with 16384 elements, two at a time.
        (by_warpgroup, "h100", "cuda", "mosaic_gpu_v2", {"math.exp": 64}),
    ],
)
def test_each_compiler_gets_a_module_with_the_one_exponential(
    function: Callable[..., Any],
    chip: str,
    platform: str,
    target: str,
    exponentials: dict[str, int],
) -> None:
    (call,) = custom_calls(lowered(function, chip, platform))
    assert call.target == target
    counts = dict(call.operations)
    assert exponentials.items() <= counts.items()
    assert not any(name.startswith("stable_") for name in counts)
    assert sum(call.dialects.values()) == sum(n for _, n in call.operations)


def test_an_interpreted_kernel_is_no_custom_call_but_a_program() -> None:
    program = lowered(lambda x: by_call(x, interpret=True), "v5e", "cpu")
    assert not custom_calls(program)
    assert operations(program)["stablehlo.exponential"] == 1


class Call:
    """A custom call that says what a test has it say."""

    attributes: dict[str, Any]

    def __str__(self) -> str:
        return "a call"


@pytest.mark.parametrize("reader", [triton.decoded, mosaic_gpu.decoded])
def test_a_call_without_its_module_is_refused(reader: Callable[[Any], Any]) -> None:
    call = Call()
    call.attributes = {}
    with pytest.raises(IRError, match=r"expected an attribute mhlo\.backend_config"):
        reader(call)
    with ir.Context():
        call.attributes = {"mhlo.backend_config": ir.Attribute.parse("{grid_x = 4 : i32}")}
        with pytest.raises(IRError, match=r"expected an entry '(ir|module)', found grid_x"):
            reader(call)


def test_bytecode_of_something_else_is_refused() -> None:
    call = Call()
    with ir.Context():
        call.attributes = {"mhlo.backend_config": ir.Attribute.parse('{module = "ML nothing"}')}
        with pytest.raises(IRError, match="expected MLIR bytecode"):
            mosaic_gpu.decoded(call)
