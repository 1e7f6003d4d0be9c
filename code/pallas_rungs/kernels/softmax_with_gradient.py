"""Softmax of every row with its gradient, whose kernel needs the softmax and not its input."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels import softmax as forward_pass
from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import (
    SUBLANES,
    at_least_float32,
    block_size,
    check_alike,
    check_matrix,
    float_dtypes,
)
from pallas_rungs.kernels.softmax import softmax, softmax_reference

CHIPS = forward_pass.CHIPS


def softmax_grad_kernel(y_ref: jax.Ref, dy_ref: jax.Ref, dx_ref: jax.Ref) -> None:
    """Write y * (dy - sum(y * dy)) for bm whole rows, computed in float32 or wider."""
    y, dy = at_least_float32(y_ref[...]), at_least_float32(dy_ref[...])
    # Adding a constant to a row of x leaves y as it is, so each row of dx must sum to zero.
    dx_ref[...] = (y * (dy - jnp.sum(y * dy, axis=1, keepdims=True))).astype(dx_ref.dtype)


def softmax_with_gradient(x: jax.Array, *, bm: int = 64, interpret: Any = False) -> jax.Array:
    """Return the softmax of each row; `jax.grad` takes it, with `softmax_grad` as backward pass.

    What is saved for the backward pass is the result, which is there anyway, and not x.

    Args:
        x: (M, N), float32 or bfloat16; float64 too where an interpreter runs the kernel.
        bm: Rows of a block, as in `softmax`.
        interpret: Passed on to ``pl.pallas_call``, in both directions.

    Returns:
        exp(x) / sum(exp(x)) along the rows, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, or bm is neither all rows nor a multiple of 8.
    """

    @jax.custom_vjp
    def value(x: jax.Array) -> jax.Array:
        return softmax(x, bm=bm, interpret=interpret)

    def forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = value(x)
        return y, y

    def backward(y: jax.Array, dy: jax.Array) -> tuple[jax.Array]:
        return (softmax_grad(y, dy, bm=bm, interpret=interpret),)

    value.defvjp(forward, backward)
    return value(x)


def softmax_grad(y: jax.Array, dy: jax.Array, *, bm: int = 64, interpret: Any = False) -> jax.Array:
    """Return the gradient of a softmax whose rows are y, for the cotangent dy.

    Args:
        y: (M, N), rows that a softmax has returned, float32 or bfloat16; float64 too where an
            interpreter runs the kernel.
        dy: (M, N), the cotangent of y, of the same dtype.
        bm: Rows of a block, as in `softmax`.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        y * (dy - sum(y * dy)) along the rows, (M, N), of the dtype of y.

    Raises:
        ValueError: y is no matrix of those dtypes, dy differs from it in shape or dtype, or bm is
            neither all rows nor a multiple of 8.
    """
    M, N = check_matrix("y", y, float_dtypes(interpret))
    check_alike("y", y, "dy", dy)
    bm = block_size("bm", bm, M, SUBLANES)

    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))
    return pl.pallas_call(
        softmax_grad_kernel,
        grid=(pl.cdiv(M, bm),),
        in_specs=[rows, rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), y.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(y, dy)


def softmax_with_gradient_reference(x: jax.Array) -> np.ndarray:
    """Return the softmax of each row in float64."""
    return softmax_reference(x)


def softmax_grad_reference(y: jax.Array, dy: jax.Array) -> np.ndarray:
    """Return y times (dy minus its mean under y), in float64: J.T @ dy, J = diag(y) - y y.T."""
    y64, dy64 = np.asarray(y, np.float64), np.asarray(dy, np.float64)
    return np.asarray(y64 * (dy64 - np.einsum("ij,ij->i", y64, dy64)[:, None]))


def cases() -> tuple[Case, ...]:
    """Return the inputs of `softmax` on which a rule around it could matter, few of them."""
    chosen = ("one element", "last block partial", "bfloat16")
    return tuple(case for case in forward_pass.cases() if case.name in chosen)


def softmax_grad_cases() -> tuple[Case, ...]:
    """Return softmaxes with a cotangent: rows that blocks fill and do not, a certainty, dtypes."""
    rng = np.random.default_rng(0)

    def pair(M: int, N: int, scale: float = 3.0, dtype: Any = np.float32) -> tuple[Any, Any]:
        x: Any = scale * rng.standard_normal((M, N))
        return softmax_reference(x).astype(dtype), rng.uniform(-1, 1, (M, N)).astype(dtype)

    # A difference of numbers up to 1, each off by some 2**-24 and a row's sum by some more, times
    # y, which is at most 1.
    rtol, atol = 1e-5, 1e-6
    return (
        Case("blocks fill the rows", pair(128, 256), rtol, atol),
        Case("last block partial", pair(72, 300), rtol, atol),
        Case("one element", pair(1, 1), rtol, atol, note="softmax of one number never moves"),
        Case("one row", pair(1, 1000), rtol, atol),
        Case("one column", pair(72, 1), rtol, atol, note="all zero"),
        Case("certain rows", pair(64, 256, 1e3), rtol, atol, note="y is 0 or 1: nothing moves"),
        Case("bfloat16", pair(64, 512, dtype=jnp.bfloat16), BFLOAT16_RTOL, atol),
    )
