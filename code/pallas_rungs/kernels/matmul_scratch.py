"""Tiled matrix product that sums in float32 scratch and rounds once, when it stores.

Adding to an output block of bfloat16 would round the sum after every block of K. Here the sum
stays in scratch, which keeps its dtype and outlives a program, and the output block is written
once, on the last visit.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import check_blocks_divide, check_product, product_blocks
from pallas_rungs.kernels.products import product_operands, product_reference

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def matmul_scratch_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref, acc_ref: jax.Ref) -> None:
    """Add a product of blocks to the (bm, bn) float32 scratch; store it on the last step of K."""
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def matmul_scratch(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int, int] = (256, 512, 256),
    vmem_limit_bytes: int | None = None,
    interpret: Any = False,
) -> jax.Array:
    """Multiply two matrices with sums in float32 and a result of the operands' dtype.

    float32 operands are multiplied at the default precision of ``jnp.dot``, which a chip may take
    as less than float32. No rung without a chip can show that.

    Args:
        x: (M, K), float32 or bfloat16.
        y: (K, N), the same dtype as x.
        block: (bm, bk, bn). A block that is longer than an axis is cut down to it. The last block
            of M and of N may be partial; bk must divide K.
        vmem_limit_bytes: Bytes of VMEM that the kernel may take; the compiler's default, if None.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x @ y, (M, N), of the dtype of x, rounded once.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, x @ y is not defined, a block
            size is neither the whole axis nor a multiple of 8 (bm) or 128 (bk, bn), or bk does
            not divide K.
    """
    M, K, N = check_product(x, y)
    bm, bk, bn = product_blocks(block, M, K, N)
    check_blocks_divide("bk", bk, "K", K)

    return pl.pallas_call(
        matmul_scratch_kernel,
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn), K // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],  # one buffer, for all programs
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"),
            vmem_limit_bytes=vmem_limit_bytes,
        ),
        interpret=interpret,
    )(x, y)


matmul_scratch_reference = product_reference


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the product and blocks that do not, each dtype."""
    operands = partial(product_operands, np.random.default_rng(0))
    # Sums of K products of size about 1 end near sqrt(K), with errors near K * 2**-24: 1e-4 for
    # K = 1536. A bfloat16 result is rounded once more, by at most 2**-8 of itself.
    rtol, atol = 1e-5, 1e-4
    return (
        Case("three blocks of K", operands(64, 1536, 256), rtol, atol),
        Case("last blocks of M and N partial", operands(264, 1024, 384), rtol, atol),
        Case("one element", operands(1, 1, 1), rtol, atol),
        Case("one row", operands(1, 1024, 384), rtol, atol),
        Case("one odd block of K", operands(264, 200, 256), rtol, atol, note="bk is all of K"),
        Case(
            "bfloat16",
            operands(64, 1536, 256, jnp.bfloat16),
            rtol + BFLOAT16_RTOL,
            atol,
            note="rounded once",
        ),
    )
