"""Sums of the columns of a matrix that is cut into blocks along both axes.

The rows are summed over, so their blocks are the last axis of the grid, although they are the
first axis of the matrix; the last block of rows may reach past the end and is masked.
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


def column_sums_kernel(x_ref: jax.Ref, o_ref: jax.Ref, *, M: int) -> None:
    """Add the column sums of a (bm, bn) block to the (1, bn) block of sums."""
    i = pl.program_id(1)

    @pl.when(i == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    x = x_ref[...].astype(o_ref.dtype)
    bm = x.shape[0]
    if M % bm:  # both are Python integers: without a tail, no mask is ever traced
        row = i * bm + lax.broadcasted_iota(jnp.int32, x.shape, 0)
        x = jnp.where(row < M, x, 0)
    o_ref[...] += jnp.sum(x, axis=0, keepdims=True)


def column_sums(
    x: jax.Array, *, block: tuple[int, int] = (256, 512), interpret: Any = False
) -> jax.Array:
    """Sum each column, block by block.

    Args:
        x: (M, N), float32, bfloat16 or int32.
        block: (bm, bn). A block that is longer than an axis is cut down to it; neither has to
            divide its axis.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        The sums along the first axis, (1, N): int32 for int32, which wraps around on overflow,
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
        partial(column_sums_kernel, M=M),
        grid=(pl.cdiv(N, bn), pl.cdiv(M, bm)),  # the axis that is summed over comes last
        in_specs=[pl.BlockSpec((bm, bn), lambda j, i: (i, j))],
        out_specs=pl.BlockSpec((1, bn), lambda j, i: (0, j)),
        out_shape=jax.ShapeDtypeStruct((1, N), dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        interpret=interpret,
    )(x)


def column_sums_reference(x: jax.Array) -> np.ndarray:
    """Return the sum of each column in float64, (1, N)."""
    with np.errstate(invalid="ignore"):  # inf - inf: NaN, without a warning
        return np.asarray(np.asarray(x, np.float64).sum(axis=0, keepdims=True))


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the matrix and that do not, offsets, infinities, dtypes."""
    rng = np.random.default_rng(0)

    def matrix(M: int, N: int, offset: float = 0.0, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(offset + rng.standard_normal((M, N))).astype(dtype)

    infinite = matrix(300, 40)
    infinite[3, 2] = np.inf
    infinite[[3, 299], 5] = np.inf, -np.inf
    counts = rng.integers(-1000, 1000, (300, 40)).astype(np.int32)
    # Summing M numbers in any order errs by at most M * 2**-24 of the sum of their sizes, about
    # 0.8 * M for normal numbers: 0.03 for M = 700. Partial sums near sqrt(M) do far better.
    return (
        Case("blocks fill the matrix", (matrix(512, 512),), atol=1e-4),
        Case("last blocks partial", (matrix(700, 600),), atol=1e-4),
        Case("one element", (matrix(1, 1),)),
        Case("one row", (matrix(1, 300),)),
        Case("one column", (matrix(257, 1),), atol=1e-4, note="a tail of one"),
        Case("large offset", (matrix(300, 40, 1e4),), rtol=300 * 2.0**-24, note="all positive"),
        Case("infinities", (infinite,), atol=1e-4, note="inf - inf is NaN"),
        Case("int32", (counts,), rtol=0, atol=0, note="exact"),
        Case("bfloat16", (matrix(300, 40, dtype=jnp.bfloat16),), atol=1e-4, note="float32 sums"),
    )
