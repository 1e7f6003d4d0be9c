"""alpha * x + beta with the two scalars in scalar memory."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import LANES, block_size, check_dtype, refusal

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def axpy_kernel(x_ref: jax.Ref, alpha_ref: jax.Ref, beta_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write alpha * x + beta for one block of x, computed in float32."""
    alpha, beta = alpha_ref[0], beta_ref[0]  # two numbers, and not two arrays of one
    o_ref[...] = (alpha * x_ref[...].astype(jnp.float32) + beta).astype(o_ref.dtype)


def axpy(
    x: jax.Array,
    alpha: jax.Array,
    beta: jax.Array,
    *,
    block: int = 1024,
    interpret: Any = False,
) -> jax.Array:
    """Scale a vector by alpha and shift it by beta, one block per program.

    Args:
        x: (N,), float32 or bfloat16.
        alpha: (1,), float32.
        beta: (1,), float32.
        block: Elements of a block. A block that is longer than x is cut down to it; the last block
            may be partial.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        alpha * x + beta, (N,), of the dtype of x.

    Raises:
        ValueError: An array has another shape or dtype, or block is neither all of x nor a
            multiple of 1024 nor a power of two of at least 128 elements of 32 bits (256 of 16).
    """
    check_dtype("x", x, ("float32", "bfloat16"))
    if x.ndim != 1 or x.size == 0:
        raise refusal(
            "the shape of x", x.shape, "the kernel takes vectors with an element", "use x.ravel()"
        )
    for name, number in (("alpha", alpha), ("beta", beta)):
        check_dtype(name, number, ("float32",))
        if number.shape != (1,):
            raise refusal(
                f"the shape of {name}",
                number.shape,
                "a scalar comes as an array of one element",
                f"use {name}.reshape(1)",
            )
    bn = _block_of_vector(block, x.size, x.dtype.itemsize)

    blocks = pl.BlockSpec((bn,), lambda i: (i,))
    scalar = pl.BlockSpec(memory_space=pltpu.SMEM)  # whole, and the same for every program
    return pl.pallas_call(
        axpy_kernel,
        grid=(pl.cdiv(x.size, bn),),
        in_specs=[blocks, scalar, scalar],
        out_specs=blocks,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(x, alpha, beta)


def _block_of_vector(size: int, axis: int, itemsize: int) -> int:
    """Check the size of a block of a vector, and cut it down to a shorter vector.

    Args:
        size: The block size that was asked for.
        axis: Length of the vector.
        itemsize: Bytes of one element.

    Returns:
        The block size to use.

    Raises:
        ValueError: The chip does not take such blocks of a vector.
    """
    size = block_size("block", size, axis, 1)
    least = LANES * 4 // itemsize
    power_of_two = size >= least and size & (size - 1) == 0
    if size < axis and size % 1024 and not power_of_two:
        larger = max(least, 1 << size.bit_length())
        raise refusal(
            "block",
            size,
            f"a block of a vector takes all {axis} elements, a multiple of 1024 of them, or a power"
            f" of two from {least}",
            f"pass {min(larger, axis)}",
        )
    return size


def axpy_reference(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> np.ndarray:
    """Return alpha * x + beta in float64."""
    return np.asarray(alpha, np.float64) * np.asarray(x, np.float64) + np.asarray(beta, np.float64)


def cases() -> tuple[Case, ...]:
    """Return inputs: vectors that blocks fill and do not, each dtype, an infinity."""
    rng = np.random.default_rng(0)

    def operands(N: int, dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
        x = (10 * rng.standard_normal(N)).astype(dtype)
        return x, np.array([1.5], np.float32), np.array([-0.25], np.float32)

    infinite = np.array([np.inf, -np.inf, 0.0, 1.0], np.float32)
    # Where alpha * x and beta cancel, the rounding of the product is left: 40 * 2**-24.
    return (
        Case("blocks fill the vector", operands(4096), atol=3e-6),
        Case("last block partial", operands(3000), atol=3e-6),
        Case("shorter than a block", operands(1000), atol=3e-6),
        Case("one element", operands(1), atol=3e-6),
        Case("infinities", (infinite, *operands(1)[1:]), note="inf stays inf"),
        Case("bfloat16", operands(3000, jnp.bfloat16), rtol=BFLOAT16_RTOL, atol=3e-6),
    )
