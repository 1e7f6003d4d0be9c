"""Tiled matrix product that sums over blocks of K in the output block."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import check_blocks_divide, check_product, product_blocks
from pallas_rungs.kernels.products import product_operands, product_reference

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def matmul_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add the product of a (bm, bk) and a (bk, bn) block to the (bm, bn) output block."""

    # The output block starts out with whatever was in that memory: its first visit clears it.
    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


def matmul(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int, int] = (512, 512, 512),
    interpret: Any = False,
) -> jax.Array:
    """Multiply two matrices, block by block in M, N and K.

    float32 operands are multiplied at the default precision of ``jnp.dot``, which a chip may take
    as less than float32. No rung without a chip can show that.

    Args:
        x: (M, K), float32 or bfloat16.
        y: (K, N), the same dtype as x.
        block: (bm, bk, bn). A block that is longer than an axis is cut down to it. The last block
            of M and of N may be partial; bk must divide K, since what lies past the end of K is
            not zero and would be summed.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x @ y, (M, N), float32.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, x @ y is not defined, a block
            size is neither the whole axis nor a multiple of 8 (bm) or 128 (bk, bn), or bk does
            not divide K.
    """
    M, K, N = check_product(x, y)
    bm, bk, bn = product_blocks(block, M, K, N)
    check_blocks_divide("bk", bk, "K", K)

    return pl.pallas_call(
        matmul_kernel,
        # The last axis runs fastest: all blocks of K visit an output block before the next one.
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn), K // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),  # the same block for every k
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
        compiler_params=pltpu.CompilerParams(
            # Output blocks do not depend on each other; the steps of one sum do.
            dimension_semantics=("parallel", "parallel", "arbitrary"),
        ),
        interpret=interpret,
    )(x, y)


matmul_reference = product_reference


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the product and blocks that do not, each dtype."""
    operands = partial(product_operands, np.random.default_rng(0))
    # Sums of K products of size about 1 end near sqrt(K), with errors near K * 2**-24.
    rtol, atol = 1e-5, 1e-4
    return (
        Case("two blocks of K", operands(512, 1024, 512), rtol, atol),
        Case("last blocks of M and N partial", operands(520, 1024, 640), rtol, atol),
        Case("one element", operands(1, 1, 1), rtol, atol),
        Case("one row", operands(1, 1024, 384), rtol, atol),
        Case("one column", operands(264, 512, 1), rtol, atol),
        Case("one odd block of K", operands(256, 200, 256), rtol, atol, note="bk is all of K"),
        Case("bfloat16", operands(512, 1024, 512, jnp.bfloat16), rtol, atol, note="float32 sums"),
    )
