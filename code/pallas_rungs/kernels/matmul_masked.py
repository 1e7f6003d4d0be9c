"""Tiled matrix product of any M, K and N: what lies past the end of K is masked in both operands.

Overhang in M and N does no harm: it ends in rows and columns of the output that are dropped. The
overhang in K is summed, so it has to be zero in both operands: zero in one of them meets whatever
stands in the other, and zero times NaN is NaN.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import check_product, product_blocks
from pallas_rungs.kernels.products import product_operands

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def matmul_masked_kernel(
    x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref, acc_ref: jax.Ref, *, K: int
) -> None:
    """Add a product of blocks to the float32 scratch, with what lies past the end of K zeroed."""
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    x, y = x_ref[...], y_ref[...]
    bk = x.shape[1]
    if K % bk:  # both are Python integers: without a tail, no mask is ever traced
        column = k * bk + lax.broadcasted_iota(jnp.int32, x.shape, 1)
        row = k * bk + lax.broadcasted_iota(jnp.int32, y.shape, 0)
        x = jnp.where(column < K, x, jnp.zeros_like(x))
        y = jnp.where(row < K, y, jnp.zeros_like(y))
    acc_ref[...] += jnp.dot(x, y, preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def matmul_masked(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int, int] = (256, 512, 256),
    interpret: Any = False,
) -> jax.Array:
    """Multiply two matrices of any size, with sums in float32.

    float32 operands are multiplied at the default precision of ``jnp.dot``, which a chip may take
    as less than float32. No rung without a chip can show that.

    Args:
        x: (M, K), float32 or bfloat16.
        y: (K, N), the same dtype as x.
        block: (bm, bk, bn). A block that is longer than an axis is cut down to it; none has to
            divide its axis.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x @ y, (M, N), of the dtype of x, rounded once. Infinities and NaN of the operands come
        out as the product of whole matrices has them.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, x @ y is not defined, or a block
            size is neither the whole axis nor a multiple of 8 (bm) or 128 (bk, bn).
    """
    M, K, N = check_product(x, y)
    bm, bk, bn = product_blocks(block, M, K, N)

    return pl.pallas_call(
        partial(matmul_masked_kernel, K=K),
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn), pl.cdiv(K, bk)),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"),
        ),
        interpret=interpret,
    )(x, y)


def matmul_masked_reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    with np.errstate(invalid="ignore"):  # infinity times zero: NaN, without a warning
        return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return inputs: nothing divides, everything does, one long axis, infinities, each dtype."""
    operands = partial(product_operands, np.random.default_rng(0))
    infinite = operands(40, 600, 200)
    infinite[0][3, 5] = np.inf
    infinite[1][599, 7] = -np.inf
    # Sums of K products of size about 1 end near sqrt(K), with errors near K * 2**-24.
    rtol, atol = 1e-5, 1e-4
    return (
        Case("everything divides", operands(256, 1024, 256), rtol, atol),
        Case("nothing divides", operands(300, 700, 333), rtol, atol),
        Case("one element", operands(1, 1, 1), rtol, atol),
        Case("one row, one column", operands(1, 1025, 1), rtol, atol, note="a tail of one"),
        Case("short K", operands(264, 5, 130), rtol, atol, note="bk is all of K"),
        Case("infinities", infinite, rtol, atol, note="a row and a column of them"),
        Case(
            "bfloat16",
            operands(40, 700, 200, jnp.bfloat16),
            rtol + BFLOAT16_RTOL,
            atol,
            note="rounded once",
        ),
    )
