"""Softmax of every row, with the row's maximum subtracted first."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import (
    SUBLANES,
    at_least_float32,
    block_size,
    check_matrix,
    float_dtypes,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def softmax_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write the softmax of bm whole rows, computed in float32 or wider."""
    x = at_least_float32(x_ref[...])
    # Subtracting the largest element changes nothing on paper, and leaves no exponent above 0.
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    o_ref[...] = (e / jnp.sum(e, axis=1, keepdims=True)).astype(o_ref.dtype)


def softmax(x: jax.Array, *, bm: int = 64, interpret: Any = False) -> jax.Array:
    """Return the softmax of each row, bm rows per program.

    One program reads a row once and keeps it in VMEM for all three passes over it: the maximum,
    the sum, the division. A row of -inf alone gives NaN, as the formula does; elements of -inf
    in other rows give 0.

    Args:
        x: (M, N), float32 or bfloat16; float64 too where an interpreter runs the kernel.
        bm: Rows of a block. A block that is longer than the array is cut down to it; the last
            block may be partial, because no row looks at another.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        exp(x) / sum(exp(x)) along the rows, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, or bm is neither all rows nor a multiple of 8.
    """
    M, N = check_matrix("x", x, float_dtypes(interpret))
    bm = block_size("bm", bm, M, SUBLANES)

    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))
    return pl.pallas_call(
        softmax_kernel,
        grid=(pl.cdiv(M, bm),),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(x)


def softmax_reference(x: jax.Array) -> np.ndarray:
    """Return the softmax of each row in float64."""
    x64 = np.asarray(x, np.float64)
    with np.errstate(invalid="ignore"):  # a row of -inf alone: NaN, without a warning
        e = np.exp(x64 - x64.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))


def cases() -> tuple[Case, ...]:
    """Return inputs: rows that blocks fill and do not, large offsets, infinities, each dtype."""
    rng = np.random.default_rng(0)

    def rows(M: int, N: int, offset: float = 0.0, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(offset + 3 * rng.standard_normal((M, N))).astype(dtype)

    masked = rows(16, 256)
    masked[:, ::3] = -np.inf
    return (
        Case("blocks fill the rows", (rows(256, 512),), rtol=1e-5),
        Case("last block partial", (rows(200, 300),), rtol=1e-5),
        Case("one element", (rows(1, 1),), note="softmax of one number is 1"),
        Case("one row", (rows(1, 1000),), rtol=1e-5),
        Case("one column", (rows(72, 1),), note="all ones"),
        Case("large offset", (rows(64, 256, 1e4),), rtol=1e-5, note="exp(1e4) is infinite"),
        Case("large negative offset", (rows(64, 256, -1e4),), rtol=1e-5, note="exp(-1e4) is 0"),
        Case("masked by -inf", (masked,), rtol=1e-5, note="exp(-inf) is 0"),
        Case("bfloat16", (rows(128, 512, dtype=jnp.bfloat16),), rtol=BFLOAT16_RTOL),
    )
