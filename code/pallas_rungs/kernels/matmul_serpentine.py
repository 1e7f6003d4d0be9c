"""Matrix product that turns round at the end of a row of blocks, and one with a GELU at its end."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import LANES, SUBLANES, block_size, check_block, check_product
from pallas_rungs.kernels.products import (
    gelu_of_product_reference,
    product_operands,
    product_reference,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def matmul_serpentine_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write bm whole rows of x times bn whole columns of y, summed in float32 and rounded once."""
    product = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = product.astype(o_ref.dtype)


def matmul_serpentine_gelu_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write GELU of bm whole rows of x times bn whole columns of y."""
    product = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = jax.nn.gelu(product, approximate=True).astype(o_ref.dtype)


def serpentine(
    kernel: Callable[..., None],
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int],
    vmem_limit_bytes: int | None,
    interpret: Any,
) -> jax.Array:
    """Call a kernel for each block of the product, every second row of blocks from right to left.

    Args:
        kernel: Makes a (bm, bn) block from (bm, K) of x and (K, bn) of y.
        x: (M, K), float32 or bfloat16.
        y: (K, N), the same dtype as x.
        block: (bm, bn). A block that is longer than the array is cut down to it.
        vmem_limit_bytes: VMEM that the compiler may give it; None for the chip's default.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        What the kernel makes, (M, N), of the dtype of x.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, x @ y is not defined, or bm or bn
            is neither the whole axis nor a multiple of 8 (bm) or 128 (bn).
    """
    M, K, N = check_product(x, y)
    check_block("block", block, ("bm", "bn"))
    bm = block_size("bm", block[0], M, SUBLANES)
    bn = block_size("bn", block[1], N, LANES)
    columns = pl.cdiv(N, bn)

    def column(i: Any, j: Any) -> Any:
        """The column of blocks: the last one of a row is also the first one of the next."""
        return jnp.where(i % 2 == 0, j, columns - 1 - j)

    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(M, bm), columns),
        in_specs=[
            pl.BlockSpec((bm, K), lambda i, j: (i, 0)),
            pl.BlockSpec((K, bn), lambda i, j: (0, column(i, j))),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, column(i, j))),
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltpu.CompilerParams(
            # No block needs another: cores may share them. The order in one core only saves copies.
            dimension_semantics=("parallel", "parallel"),
            vmem_limit_bytes=vmem_limit_bytes,
        ),
        interpret=interpret,
    )(x, y)


def matmul_serpentine(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int] = (256, 256),
    vmem_limit_bytes: int | None = None,
    interpret: Any = False,
) -> jax.Array:
    """Multiply two matrices, all of K in each program, and never change both operands' blocks.

    Large blocks take more VMEM than a chip gives unasked: two buffers each of (bm, K), (K, bn) and
    (bm, bn), and room for what the compiler spills. ``vmem_limit_bytes`` asks for more.

    float32 operands are multiplied at the default precision of ``jnp.dot``, which a chip may take
    as less than float32. No rung without a chip can show that.

    Args:
        x: (M, K), float32 or bfloat16.
        y: (K, N), the same dtype as x.
        block: (bm, bn), the rows and columns of a block of the product. A block that is longer
            than the array is cut down to it; the last block of an axis may be partial.
        vmem_limit_bytes: VMEM that the compiler may give it; None for the chip's default.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x @ y, (M, N), of the dtype of x; rounded to it once, from a float32 sum.

    Raises:
        ValueError: The arrays are no matrices of those dtypes, x @ y is not defined, or bm or bn
            is neither the whole axis nor a multiple of 8 (bm) or 128 (bn).
    """
    return serpentine(
        matmul_serpentine_kernel,
        x,
        y,
        block=block,
        vmem_limit_bytes=vmem_limit_bytes,
        interpret=interpret,
    )


def matmul_serpentine_gelu(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int] = (256, 256),
    vmem_limit_bytes: int | None = None,
    interpret: Any = False,
) -> jax.Array:
    """Return GELU of a matrix product, in the order of ``matmul_serpentine``.

    The GELU is the one with tanh, as in ``jax.nn.gelu`` by default.

    Args:
        x: (M, K), float32 or bfloat16.
        y: (K, N), the same dtype as x.
        block: (bm, bn), as in ``matmul_serpentine``.
        vmem_limit_bytes: VMEM that the compiler may give it; None for the chip's default.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        gelu(x @ y), (M, N), of the dtype of x; rounded to it once, from a float32 sum.

    Raises:
        ValueError: As ``matmul_serpentine``.
    """
    return serpentine(
        matmul_serpentine_gelu_kernel,
        x,
        y,
        block=block,
        vmem_limit_bytes=vmem_limit_bytes,
        interpret=interpret,
    )


matmul_serpentine_reference = product_reference


matmul_serpentine_gelu_reference = gelu_of_product_reference


def cases() -> tuple[Case, ...]:
    """Return inputs: an odd and an even number of rows of blocks, partial last ones, each dtype."""
    operands = partial(product_operands, np.random.default_rng(0), sums_of_size_one=True)
    # Sums of size 1, with errors near sqrt(K) * 2**-24; the slope of GELU stays below 1.13.
    rtol, atol = 1e-5, 1e-5
    return (
        Case("two rows of two blocks", operands(512, 256, 512), rtol, atol),
        Case("last blocks of M and N partial", operands(520, 200, 640), rtol, atol),
        Case("one element", operands(1, 1, 1), rtol, atol),
        Case("one row", operands(1, 256, 640), rtol, atol),
        Case("one column", operands(264, 256, 1), rtol, atol),
        Case("bfloat16", operands(512, 384, 384, jnp.bfloat16), BFLOAT16_RTOL, atol),
    )
