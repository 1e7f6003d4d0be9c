"""Matrix product with a GELU on its way out: summed in scratch memory, written once."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import check_blocks_divide, check_product, product_blocks
from pallas_rungs.kernels.products import gelu_of_product_reference, product_operands

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def matmul_gelu_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref, sum_ref: jax.Ref) -> None:
    """Add one product of blocks to the float32 sum; write GELU of the sum on the last step."""
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    # GELU is not linear: it belongs to the finished sum, and to no part of it.
    @pl.when(k == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = jax.nn.gelu(sum_ref[...], approximate=True).astype(o_ref.dtype)


def matmul_gelu(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int, int] = (256, 512, 256),
    interpret: Any = False,
) -> jax.Array:
    """Return GELU of a matrix product, and never write the product itself.

    The GELU is the one with tanh, as in ``jax.nn.gelu`` by default. The TPU lowering has no rule
    for the ``erfc`` of the exact one.

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
        gelu(x @ y), (M, N), of the dtype of x; rounded to it once, from a float32 sum.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, x @ y is not defined, a block
            size is neither the whole axis nor a multiple of 8 (bm) or 128 (bk, bn), or bk does
            not divide K.
    """
    M, K, N = check_product(x, y)
    bm, bk, bn = product_blocks(block, M, K, N)
    check_blocks_divide("bk", bk, "K", K)

    return pl.pallas_call(
        matmul_gelu_kernel,
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn), K // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],  # outlives a step, never leaves VMEM
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"),
        ),
        interpret=interpret,
    )(x, y)


matmul_gelu_reference = gelu_of_product_reference


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the product and blocks that do not, each dtype."""
    operands = partial(product_operands, np.random.default_rng(0), sums_of_size_one=True)
    # Sums of size 1, with errors near sqrt(K) * 2**-24; the slope of GELU stays below 1.13.
    rtol, atol = 1e-5, 1e-5
    return (
        Case("two blocks of K", operands(128, 1024, 128), rtol, atol),
        Case("last blocks of M and N partial", operands(264, 1024, 384), rtol, atol),
        Case("one element", operands(1, 1, 1), rtol, atol),
        Case("one row", operands(1, 1024, 128), rtol, atol),
        Case("one column", operands(72, 512, 1), rtol, atol),
        Case("one odd block of K", operands(64, 200, 128), rtol, atol, note="bk is all of K"),
        Case("far from zero", (np.eye(8, dtype=np.float32), _ramp()), rtol, atol),
        Case("bfloat16", operands(128, 1024, 128, jnp.bfloat16), BFLOAT16_RTOL, atol),
    )


def _ramp() -> np.ndarray:
    """Return (8, 256) numbers from -1e3 to 1e3, where GELU is 0 and the identity."""
    return np.linspace(-1e3, 1e3, 8 * 256, dtype=np.float32).reshape(8, 256)
