"""Elementwise addition: once on whole arrays, once block by block."""

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
    block_size,
    check_alike,
    check_block,
    check_matrix,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def add_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write x + y to the output. The refs are whole arrays or blocks; the body does not know."""
    o_ref[...] = x_ref[...] + y_ref[...]


def add_whole(x: jax.Array, y: jax.Array, *, interpret: Any = False) -> jax.Array:
    """Add two matrices in one program that sees both of them whole.

    Args:
        x: (M, N), float32, bfloat16 or int32.
        y: The same shape and dtype as x.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x + y, of the same shape and dtype.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, or differ.
    """
    check_matrix("x", x, ("float32", "bfloat16", "int32"))
    check_alike("x", x, "y", y)
    return pl.pallas_call(
        add_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x, y)


def add(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int] = (256, 256),
    interpret: Any = False,
) -> jax.Array:
    """Add two matrices, one block of rows and columns per program.

    Args:
        x: (M, N), float32, bfloat16 or int32.
        y: The same shape and dtype as x.
        block: (bm, bn), the rows and columns of a block. A block that is longer than the array
            is cut down to it; the last block of an axis may be partial.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x + y, of the same shape and dtype.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, or differ, or bm or bn is neither
            the whole axis nor a multiple of 8 (bm) or 128 (bn).
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16", "int32"))
    check_alike("x", x, "y", y)
    check_block("block", block, ("bm", "bn"))
    bm = block_size("bm", block[0], M, SUBLANES)
    bn = block_size("bn", block[1], N, LANES)

    # Program (i, j) gets block (i, j) of every operand: rows from i*bm, columns from j*bn.
    block_ij = pl.BlockSpec((bm, bn), lambda i, j: (i, j))
    return pl.pallas_call(
        add_kernel,
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn)),
        in_specs=[block_ij, block_ij],
        out_specs=block_ij,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        interpret=interpret,
    )(x, y)


def add_reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x + y in float64."""
    return np.asarray(x, np.float64) + np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return inputs of both calls: shapes that blocks fill, shapes that they do not, each dtype."""
    rng = np.random.default_rng(0)

    def pair(M: int, N: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        x, y = 100 * rng.standard_normal((2, M, N))
        return x.astype(dtype), y.astype(dtype)

    infinite = np.array([[np.inf, -np.inf, 1.0, 0.0]], np.float32)
    finite = np.array([[1.0, 1.0, np.inf, -0.0]], np.float32)
    return (
        Case("blocks fill the array", pair(512, 512, np.float32)),
        Case("last blocks partial", pair(300, 400, np.float32)),
        Case("one element", pair(1, 1, np.float32)),
        Case("one row", pair(1, 640, np.float32)),
        Case("one column", pair(640, 1, np.float32)),
        Case("bfloat16", pair(512, 256, jnp.bfloat16), rtol=BFLOAT16_RTOL),
        Case("integers", pair(64, 256, np.int32), rtol=0.0, atol=0.0, note="exact"),
        Case("infinities", (infinite, finite), note="inf + x stays inf"),
    )
