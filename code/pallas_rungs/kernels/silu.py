"""SiLU, x times sigmoid of x, with its gradient: a forward and a backward kernel, and the rule."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import (
    LANES,
    SUBLANES,
    at_least_float32,
    block_size,
    check_alike,
    check_block,
    check_matrix,
    float_dtypes,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def silu_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write x times sigmoid of x for one block, computed in float32 or wider."""
    x = at_least_float32(x_ref[...])
    o_ref[...] = (x * jax.nn.sigmoid(x)).astype(o_ref.dtype)


def silu_grad_kernel(x_ref: jax.Ref, dy_ref: jax.Ref, dx_ref: jax.Ref) -> None:
    """Write dy times the derivative of SiLU at x for one block, computed in float32 or wider."""
    x, dy = at_least_float32(x_ref[...]), at_least_float32(dy_ref[...])
    s = jax.nn.sigmoid(x)
    # The product rule: s from the factor x, and x times the derivative of s, which is s (1 - s).
    dx_ref[...] = (dy * s * (1 + x * (1 - s))).astype(dx_ref.dtype)


def silu(x: jax.Array, *, block: tuple[int, int] = (256, 512), interpret: Any = False) -> jax.Array:
    """Return x times sigmoid of x; `jax.grad` takes it, with `silu_grad` as its backward pass.

    The formula as it stands: at -inf it is NaN, because it multiplies by zero there.

    Args:
        x: (M, N), float32 or bfloat16; float64 too where an interpreter runs the kernel.
        block: (bm, bn). A block that is longer than an axis is cut down to it; the last block of
            an axis may be partial, because no element looks at another.
        interpret: Passed on to ``pl.pallas_call``, in both directions.

    Returns:
        (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, or a block size is neither the whole axis nor a
            multiple of 8 (bm) or 128 (bn).
    """
    check_matrix("x", x, float_dtypes(interpret))

    @jax.custom_vjp
    def value(x: jax.Array) -> jax.Array:
        return by_blocks(silu_kernel, block, interpret, x)

    def forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return value(x), x  # x is the residual: what the backward pass will need

    def backward(x: jax.Array, dy: jax.Array) -> tuple[jax.Array]:
        return (silu_grad(x, dy, block=block, interpret=interpret),)

    value.defvjp(forward, backward)
    return value(x)


def silu_grad(
    x: jax.Array, dy: jax.Array, *, block: tuple[int, int] = (256, 512), interpret: Any = False
) -> jax.Array:
    """Return dy times the derivative of SiLU at x.

    Args:
        x: (M, N), float32 or bfloat16; float64 too where an interpreter runs the kernel.
        dy: (M, N), the cotangent of the output, of the dtype of x.
        block: (bm, bn), as in `silu`.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        (M, N), of the dtype of x.

    Raises:
        ValueError: x or dy is no matrix of those dtypes, they differ in shape or dtype, or a block
            size is neither the whole axis nor a multiple of 8 (bm) or 128 (bn).
    """
    check_matrix("x", x, float_dtypes(interpret))
    check_alike("x", x, "dy", dy)
    return by_blocks(silu_grad_kernel, block, interpret, x, dy)


def by_blocks(
    kernel: Callable[..., None], block: tuple[int, int], interpret: Any, *operands: jax.Array
) -> jax.Array:
    """Run an elementwise kernel on matrices of one shape and one dtype.

    Args:
        kernel: Takes a (bm, bn) block of each operand and of the output.
        block: (bm, bn), as in `silu`.
        interpret: Passed on to ``pl.pallas_call``.
        *operands: (M, N) each.

    Returns:
        (M, N), of the operands' dtype.

    Raises:
        ValueError: A block size is neither the whole axis nor a multiple of 8 (bm) or 128 (bn).
    """
    M, N = operands[0].shape
    check_block("block", block, ("bm", "bn"))
    bm = block_size("bm", block[0], M, SUBLANES)
    bn = block_size("bn", block[1], N, LANES)

    spec = pl.BlockSpec((bm, bn), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn)),
        in_specs=[spec] * len(operands),
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((M, N), operands[0].dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        interpret=interpret,
    )(*operands)


def silu_reference(x: jax.Array) -> np.ndarray:
    """Return x / (1 + exp(-x)) in float64."""
    x64 = np.asarray(x, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # exp(-x) may be infinite: the quotient is 0
        return np.asarray(x64 / (1 + np.exp(-x64)))


def silu_grad_reference(x: jax.Array, dy: jax.Array) -> np.ndarray:
    """Return dy times the derivative of SiLU at x, in float64."""
    x64 = np.asarray(x, np.float64)
    with np.errstate(over="ignore"):
        s = 1 / (1 + np.exp(-x64))
    return np.asarray(dy, np.float64) * (s + x64 * s * (1 - s))


# The sigmoid is off by a few units in the last place of float32, 2**-24, and x times that error is
# at most 20 units where 1 - s is not yet zero. The derivative crosses zero at x = -1.28, so near
# there only an absolute error, in units of dy, says anything.
_RTOL, _ATOL = 2e-6, 2e-6


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the array and do not, far from zero, each dtype."""
    rng = np.random.default_rng(0)

    def normal(M: int, N: int, scale: float = 3.0, dtype: Any = np.float32) -> tuple[np.ndarray]:
        return ((scale * rng.standard_normal((M, N))).astype(dtype),)

    return (
        Case("blocks fill the array", normal(256, 1024), _RTOL),
        Case("last blocks partial", normal(264, 384), _RTOL),
        Case("one element", normal(1, 1), _RTOL),
        Case("one row", normal(1, 1000), _RTOL),
        Case("one column", normal(264, 1), _RTOL),
        Case("far from zero", normal(16, 256, 1e4), _RTOL, note="x on one side, 0 on the other"),
        Case("infinite", (np.array([[np.inf, -np.inf]], np.float32),), note="inf, and 0 x inf"),
        Case("bfloat16", normal(64, 512, dtype=jnp.bfloat16), BFLOAT16_RTOL),
    )


def silu_grad_cases() -> tuple[Case, ...]:
    """Return inputs for the backward pass: those of `cases` that are finite, with a cotangent."""
    rng = np.random.default_rng(1)

    def with_cotangent(case: Case) -> Case:
        (x,) = case.args
        rtol = max(case.rtol, _RTOL)
        dy = rng.uniform(-1, 1, x.shape).astype(x.dtype)
        return Case(case.name, (x, dy), rtol, _ATOL, case.note)

    return tuple(with_cotangent(case) for case in cases() if case.name != "infinite")
