"""Matrix product without a split of K: rows of x times columns of y, one block per program."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import LANES, SUBLANES, block_size, check_block, check_product
from pallas_rungs.kernels.products import product_operands, product_reference

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def matmul_rows_columns_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write bm whole rows of x times bn whole columns of y to the (bm, bn) output block."""
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


def matmul_rows_columns(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int] = (256, 256),
    interpret: Any = False,
) -> jax.Array:
    """Multiply two matrices; each program holds all of K.

    Simple, and good while K is short: a program needs bm*K + K*bn elements of VMEM, which grow
    with K until the compiler refuses. ``matmul`` splits K as well.

    float32 operands are multiplied at the default precision of ``jnp.dot``, which a chip may take
    as less than float32. No rung without a chip can show that.

    Args:
        x: (M, K), float32 or bfloat16.
        y: (K, N), the same dtype as x.
        block: (bm, bn), the rows and columns of a block of the product. A block that is longer
            than the array is cut down to it; the last block of an axis may be partial.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x @ y, (M, N), float32.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, x @ y is not defined, or bm or bn
            is neither the whole axis nor a multiple of 8 (bm) or 128 (bn).
    """
    M, K, N = check_product(x, y)
    check_block("block", block, ("bm", "bn"))
    bm = block_size("bm", block[0], M, SUBLANES)
    bn = block_size("bn", block[1], N, LANES)

    return pl.pallas_call(
        matmul_rows_columns_kernel,
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn)),
        in_specs=[
            pl.BlockSpec((bm, K), lambda i, j: (i, 0)),  # bm rows, from end to end
            pl.BlockSpec((K, bn), lambda i, j: (0, j)),  # bn columns, from top to bottom
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        interpret=interpret,
    )(x, y)


matmul_rows_columns_reference = product_reference


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the product and blocks that do not, each dtype."""
    operands = partial(product_operands, np.random.default_rng(0))
    # Sums of K products of size about 1 end near sqrt(K), with errors near K * 2**-24.
    rtol, atol = 1e-5, 1e-4
    return (
        Case("blocks fill the product", operands(512, 256, 512), rtol, atol),
        Case("last blocks partial", operands(300, 200, 400), rtol, atol),
        Case("one element", operands(1, 1, 1), rtol, atol),
        Case("one row", operands(1, 256, 384), rtol, atol),
        Case("one column", operands(264, 256, 1), rtol, atol),
        Case("K is one", operands(256, 1, 256), rtol, atol, note="an outer product"),
        Case("bfloat16", operands(256, 384, 256, jnp.bfloat16), rtol, atol, note="float32 sums"),
    )
