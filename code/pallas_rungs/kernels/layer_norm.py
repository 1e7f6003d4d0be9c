"""LayerNorm of every row, with the variance taken from the centred row."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import SUBLANES, block_size, check_dtype, check_matrix, refusal

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def layer_norm_kernel(
    x_ref: jax.Ref, gamma_ref: jax.Ref, beta_ref: jax.Ref, o_ref: jax.Ref, *, eps: float
) -> None:
    """Write bm normalised rows, computed in float32; gamma_ref and beta_ref are (1, N)."""
    x = x_ref[...].astype(jnp.float32)
    centred = x - jnp.mean(x, axis=1, keepdims=True)
    # The second pass squares what is left of the row, so a large mean has no digits to eat.
    variance = jnp.mean(centred * centred, axis=1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(variance + eps) * gamma_ref[...] + beta_ref[...]
    o_ref[...] = scaled.astype(o_ref.dtype)


def layer_norm(
    x: jax.Array,
    gamma: jax.Array,
    beta: jax.Array,
    *,
    eps: float = 1e-5,
    bm: int = 64,
    interpret: Any = False,
) -> jax.Array:
    """Normalise each row to mean 0 and variance 1, then scale by gamma and shift by beta.

    The variance is the mean square of the centred row, with N in the denominator. A row whose
    elements are all alike has variance 0 and comes out as beta, as far as its mean is exact. A row
    that holds an infinity or a NaN comes out as NaN.

    Args:
        x: (M, N), float32 or bfloat16.
        gamma: (N,), float32 or bfloat16.
        beta: (N,), float32 or bfloat16.
        eps: Added to the variance; a positive Python number.
        bm: Rows of a block. A block that is longer than the array is cut down to it; the last
            block may be partial, because no row looks at another.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        (x - mean) / sqrt(variance + eps) * gamma + beta, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, gamma or beta is not one number of those dtypes
            for each column, eps is not a positive Python number, or bm is neither all rows nor a
            multiple of 8.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16"))
    for name, row in (("gamma", gamma), ("beta", beta)):
        check_dtype(name, row, ("float32", "bfloat16"))
        if row.shape != (N,):
            raise refusal(
                f"the shape of {name}",
                row.shape,
                f"x has {N} columns, and each of them needs one number",
                f"pass shape ({N},)",
            )
    if not isinstance(eps, int | float) or not 0 < eps < math.inf:
        raise refusal(
            "eps",
            eps,
            "it is fixed before the kernel is traced and keeps the square root away from 0",
            "pass a positive Python number such as 1e-5",
        )
    bm = block_size("bm", bm, M, SUBLANES)

    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))
    one_row = pl.BlockSpec((1, N), lambda i: (0, 0))  # the same block for every program
    return pl.pallas_call(
        functools.partial(layer_norm_kernel, eps=eps),
        grid=(pl.cdiv(M, bm),),
        in_specs=[rows, one_row, one_row],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(x, gamma.reshape(1, N), beta.reshape(1, N))


def layer_norm_reference(
    x: jax.Array, gamma: jax.Array, beta: jax.Array, *, eps: float = 1e-5
) -> np.ndarray:
    """Return the LayerNorm of each row in float64."""
    x64 = np.asarray(x, np.float64)
    centred = x64 - x64.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    normal = centred / np.sqrt(variance + eps)
    return np.asarray(normal * np.asarray(gamma, np.float64) + np.asarray(beta, np.float64))


def cases() -> tuple[Case, ...]:
    """Return inputs: rows that blocks fill and do not, a large offset, equal rows, each dtype."""
    rng = np.random.default_rng(0)

    def operands(M: int, N: int, dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
        x = (3 * rng.standard_normal((M, N))).astype(dtype)
        gamma, beta = rng.standard_normal((2, N)).astype(dtype)
        return x, gamma, beta

    # Whole quarters next to 1e4: a sum of 256 of them is below 2**24 quarters, so float32 holds it
    # exactly, and so is the mean. What is left is the rounding of a dozen operations.
    quarters = np.rint(12 * rng.standard_normal((64, 256))) / 4
    far = (quarters + 1e4).astype(np.float32), *operands(1, 256)[1:]
    alike = np.full((8, 128), 3.0, np.float32), *operands(1, 128)[1:]
    # A mean of N numbers of size 3 may be off by N * 2**-24 * 3, a thousandth of atol for each
    # hundred columns; gamma and beta are of size 1.
    rtol, atol = 1e-5, 1e-4
    return (
        Case("blocks fill the rows", operands(128, 256), rtol, atol),
        Case("last block partial", operands(72, 200), rtol, atol),
        Case("one element", operands(1, 1), note="variance 0: beta"),
        Case("one row", operands(1, 1000), rtol, atol),
        Case("one column", operands(72, 1), note="variance 0: beta"),
        Case("large offset", far, 1e-5, 1e-6, note="the mean is exact, the spread is not lost"),
        Case("rows of one number", alike, note="variance 0: beta"),
        Case("bfloat16", operands(64, 256, jnp.bfloat16), BFLOAT16_RTOL + 1e-5, atol),
    )
