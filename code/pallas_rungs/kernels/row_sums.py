"""Sums of the rows of a matrix that is cut into blocks along both axes.

The columns are summed over, so their blocks are the last axis of the grid; the last of them may
reach past the end of the matrix and is masked. Rows past the end are summed too, and dropped.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import LANES, SUBLANES, block_size, check_block, check_matrix

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def row_sums_kernel(x_ref: jax.Ref, o_ref: jax.Ref, *, N: int) -> None:
    """Add the row sums of a (bm, bn) block to the (bm, 1) block of sums."""
    j = pl.program_id(1)

    @pl.when(j == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    x = x_ref[...].astype(o_ref.dtype)
    bn = x.shape[1]
    if N % bn:  # both are Python integers: without a tail, no mask is ever traced
        column = j * bn + lax.broadcasted_iota(jnp.int32, x.shape, 1)
        x = jnp.where(column < N, x, 0)
    o_ref[...] += jnp.sum(x, axis=1, keepdims=True)


def row_sums(
    x: jax.Array, *, block: tuple[int, int] = (256, 512), interpret: Any = False
) -> jax.Array:
    """Sum each row, block by block.

    Args:
        x: (M, N), float32, bfloat16 or int32.
        block: (bm, bn). A block that is longer than an axis is cut down to it; neither has to
            divide its axis.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        The sums along the last axis, (M, 1): int32 for int32, which wraps around on overflow,
        and float32 otherwise.

    Raises:
        ValueError: x is no matrix of those dtypes, or a block size is neither the whole axis nor
            a multiple of 8 (bm) or 128 (bn).
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16", "int32"))
    check_block("block", block, ("bm", "bn"))
    bm = block_size("bm", block[0], M, SUBLANES)
    bn = block_size("bn", block[1], N, LANES)
    dtype = jnp.int32 if x.dtype == jnp.int32 else jnp.float32

    return pl.pallas_call(
        partial(row_sums_kernel, N=N),
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn)),  # the axis that is summed over comes last
        in_specs=[pl.BlockSpec((bm, bn), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((bm, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((M, 1), dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        interpret=interpret,
    )(x)


def row_sums_reference(x: jax.Array) -> np.ndarray:
    """Return the sum of each row in float64, (M, 1)."""
    with np.errstate(invalid="ignore"):  # inf - inf: NaN, without a warning
        return np.asarray(np.asarray(x, np.float64).sum(axis=1, keepdims=True))


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the matrix and that do not, offsets, infinities, dtypes."""
    rng = np.random.default_rng(0)

    def matrix(M: int, N: int, offset: float = 0.0, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(offset + rng.standard_normal((M, N))).astype(dtype)

    infinite = matrix(16, 700)
    infinite[2, 3] = np.inf
    infinite[5, [3, 699]] = np.inf, -np.inf
    counts = rng.integers(-1000, 1000, (40, 700)).astype(np.int32)
    # Summing N numbers in any order errs by at most N * 2**-24 of the sum of their sizes, about
    # 0.8 * N for normal numbers: 0.03 for N = 700. Partial sums near sqrt(N) do far better.
    return (
        Case("blocks fill the matrix", (matrix(256, 1024),), atol=1e-4),
        Case("last blocks partial", (matrix(300, 700),), atol=1e-4),
        Case("one element", (matrix(1, 1),)),
        Case("one row", (matrix(1, 513),), atol=1e-4, note="a tail of one"),
        Case("one column", (matrix(72, 1),)),
        Case("large offset", (matrix(16, 700, 1e4),), rtol=700 * 2.0**-24, note="all positive"),
        Case("infinities", (infinite,), atol=1e-4, note="inf - inf is NaN"),
        Case("int32", (counts,), rtol=0, atol=0, note="exact"),
        Case("bfloat16", (matrix(40, 700, dtype=jnp.bfloat16),), atol=1e-4, note="float32 sums"),
    )
