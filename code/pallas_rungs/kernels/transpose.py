"""Transposition: the index map of the output swaps i and j, and the body swaps inside a block."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import LANES, block_size, check_block, check_matrix

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def transpose_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write the transpose of a (bm, bn) block to a (bn, bm) block."""
    o_ref[...] = x_ref[...].T


def transpose(
    x: jax.Array,
    *,
    block: tuple[int, int] = (256, 256),
    interpret: Any = False,
) -> jax.Array:
    """Transpose a matrix, one block per program.

    Args:
        x: (M, N), float32, bfloat16 or int32.
        block: (bm, bn), the rows and columns of a block of x. A block that is longer than the
            array is cut down to it; the last block of an axis may be partial.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x.T, (N, M), of the same dtype.

    Raises:
        ValueError: x is no matrix of those dtypes, or bm or bn is neither the whole axis nor a
            multiple of 128. Either axis of x is the last axis of one of the two arrays.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16", "int32"))
    check_block("block", block, ("bm", "bn"))
    bm = block_size("bm", block[0], M, LANES)
    bn = block_size("bn", block[1], N, LANES)

    return pl.pallas_call(
        transpose_kernel,
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn)),
        in_specs=[pl.BlockSpec((bm, bn), lambda i, j: (i, j))],
        # Two swaps: the body turns the block, the index map puts it at (j, i).
        out_specs=pl.BlockSpec((bn, bm), lambda i, j: (j, i)),
        out_shape=jax.ShapeDtypeStruct((N, M), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        interpret=interpret,
    )(x)


def transpose_reference(x: jax.Array) -> np.ndarray:
    """Return x.T in float64."""
    return np.asarray(x, np.float64).T


def cases() -> tuple[Case, ...]:
    """Return inputs whose elements all differ, so that a misplaced one is seen."""

    def counted(M: int, N: int, dtype: Any = np.float32) -> tuple[np.ndarray]:
        return (np.arange(M * N).reshape(M, N).astype(dtype),)

    few_bits = (np.arange(256)[:, None] + np.zeros((1, 384))).astype(jnp.bfloat16)
    return (
        Case("blocks fill the array", counted(512, 768)),
        Case("last blocks partial", counted(300, 400)),
        Case("one element", counted(1, 1)),
        Case("one row", counted(1, 640)),
        Case("one column", counted(640, 1)),
        Case("bfloat16", (few_bits,), note="0 to 255 are exact in bfloat16"),
        Case("integers", counted(128, 256, np.int32)),
    )
