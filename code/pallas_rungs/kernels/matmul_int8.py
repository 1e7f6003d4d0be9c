"""Matrix product with int8 weights, which are widened in the block and scaled at the end."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import (
    check_blocks_divide,
    check_dtype,
    check_matrix,
    product_blocks,
    refusal,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")

LARGEST = 127
"""Largest size of a quantised weight: -128 is left out, so that the sign can be flipped."""


def quantise(w: Any) -> tuple[np.ndarray, np.ndarray]:
    """Round a matrix to int8, each column to multiples of a scale of its own.

    Weights are quantised once, so this is done on the host. The quotient is taken in float64,
    where no quotient of two float32 numbers falls on the wrong side of a half: each weight is off
    by at most half a scale, exactly.

    Args:
        w: (K, N), float32 or bfloat16, finite.

    Returns:
        q: (K, N), int8, -127 … 127.
        scale: (N,), float32, above zero: w is about q * scale.

    Raises:
        ValueError: w is no matrix of those dtypes, or not finite.
    """
    check_matrix("w", w, ("float32", "bfloat16"))
    w64 = np.asarray(w).astype(np.float64)
    if not np.isfinite(w64).all():
        raise refusal(
            "an element of w",
            w64[~np.isfinite(w64)][0],
            "a scale covers finite numbers",
            "replace what is not finite first",
        )
    smallest = np.finfo(np.float32).tiny  # for a column of zeros
    scale = np.maximum(np.abs(w64).max(axis=0) / LARGEST, smallest).astype(np.float32)
    return np.rint(w64 / scale).astype(np.int8), scale


def matmul_int8_kernel(
    x_ref: jax.Ref, q_ref: jax.Ref, scale_ref: jax.Ref, o_ref: jax.Ref, acc_ref: jax.Ref
) -> None:
    """Add a (bm, bk) by (bk, bn) product to the accumulator; scale it on the last block of K."""
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    w = q_ref[...].astype(x_ref.dtype)  # exact: bfloat16 holds every integer up to 256
    acc_ref[...] += jnp.dot(x_ref[...], w, preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...] * scale_ref[...]


def matmul_int8(
    x: jax.Array,
    q: jax.Array,
    scale: jax.Array,
    *,
    block: tuple[int, int, int] = (256, 512, 512),
    interpret: Any = False,
) -> jax.Array:
    """Multiply a matrix with weights kept in int8 and a scale for each of their columns.

    float32 activations are multiplied at the default precision of ``jnp.dot``, which a chip may
    take as less than float32.

    Args:
        x: (M, K), float32 or bfloat16.
        q: (K, N), int8.
        scale: (N,), float32.
        block: (bm, bk, bn). A block that is longer than an axis is cut down to it. The last block
            of M and of N may be partial; bk must divide K.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x @ (q * scale), (M, N), float32.

    Raises:
        ValueError: x and q are no matrices of those dtypes, the columns of x are not the rows of
            q, scale is no float32 vector with an element for each column of q, a block size is
            neither the whole axis nor a multiple of 8 (bm) or 128 (bk, bn), or bk does not
            divide K.
    """
    M, K = check_matrix("x", x, ("float32", "bfloat16"))
    rows, N = check_matrix("q", q, ("int8",))
    if rows != K:
        raise refusal(
            "the shape of q",
            q.shape,
            f"x @ q needs the {K} columns of x, {x.shape}, to meet as many rows of q",
            "transpose or slice one of them",
        )
    check_dtype("scale", scale, ("float32",))
    if scale.shape != (N,):
        raise refusal(
            "the shape of scale",
            scale.shape,
            f"each of the {N} columns of q has one",
            f"pass an array of shape ({N},)",
        )
    bm, bk, bn = product_blocks(block, M, K, N)
    check_blocks_divide("bk", bk, "K", K)

    return pl.pallas_call(
        matmul_int8_kernel,
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn), K // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
            pl.BlockSpec((1, bn), lambda i, j, k: (0, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"),
        ),
        interpret=interpret,
    )(x, q, scale.reshape(1, N))


def matmul_int8_reference(x: jax.Array, q: jax.Array, scale: jax.Array) -> np.ndarray:
    """Return x @ (q * scale) in float64."""
    w = np.asarray(q, np.float64) * np.asarray(scale, np.float64)
    return np.asarray(x, np.float64) @ w


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the product and blocks that do not, each dtype, extremes."""
    rng = np.random.default_rng(0)

    def operands(
        M: int, K: int, N: int, dtype: Any = np.float32, offset: float = 0.0
    ) -> tuple[np.ndarray, ...]:
        x = offset + rng.standard_normal((M, K))
        q, scale = quantise(rng.standard_normal((K, N)).astype(np.float32))
        return x.astype(dtype), q, scale

    extremes = operands(8, 128, 128)
    extremes[1][:64] = -128  # quantise never gives it, other quantisers do
    extremes[1][64:] = 127
    infinite = operands(16, 128, 128)
    infinite[0][0, 0] = np.inf
    infinite[1][0] = 1  # infinity times zero would be NaN
    # Sums of K products of size about 1 end near sqrt(K), with errors near K * 2**-24. With an
    # offset of 1e4 the bound is K * 2**-24 of the sum of the sizes, K * 1e4: 10 for K = 128.
    rtol, atol = 1e-5, 1e-4
    return (
        Case("two blocks of K", operands(64, 1024, 512), rtol, atol),
        Case("last blocks of M and N partial", operands(264, 512, 640), rtol, atol),
        Case("one element", operands(1, 1, 1), rtol, atol),
        Case("one row", operands(1, 1024, 384), rtol, atol),
        Case("one column", operands(40, 128, 1), rtol, atol),
        Case("one odd block of K", operands(16, 200, 256), rtol, atol, note="bk is all of K"),
        Case("the largest weights", extremes, rtol, atol, note="-128 too"),
        Case("large offset", operands(8, 128, 128, offset=1e4), rtol, 10.0),
        Case("infinity stays in its row", infinite, rtol, atol),
        Case("bfloat16", operands(64, 1024, 512, jnp.bfloat16), rtol, atol, note="float32 sums"),
    )
