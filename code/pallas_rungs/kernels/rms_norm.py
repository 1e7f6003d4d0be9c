"""RMSNorm: every row divided by its root mean square, then scaled column by column."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import SUBLANES, block_size, check_dtype, check_matrix, refusal

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def rms_norm_kernel(x_ref: jax.Ref, w_ref: jax.Ref, o_ref: jax.Ref, *, eps: float) -> None:
    """Normalise bm whole rows in float32 and scale them by the (1, N) weights."""
    x = x_ref[...].astype(jnp.float32)
    mean_square = jnp.mean(x * x, axis=1, keepdims=True)
    # eps inside the root: a row of zeros gives zeros, and not zero times infinity.
    y = x * jax.lax.rsqrt(mean_square + eps) * w_ref[...].astype(jnp.float32)
    o_ref[...] = y.astype(o_ref.dtype)


def rms_norm(
    x: jax.Array, w: jax.Array, *, eps: float = 1e-6, bm: int = 64, interpret: Any = False
) -> jax.Array:
    """Return ``x / sqrt(mean(x**2) + eps) * w``, the mean along each row, bm rows per program.

    The squares are summed in float32, whatever the dtype of x. A row whose squares sum to more than
    3.4e38, the largest float32, comes out as zeros.

    Args:
        x: (M, N), float32 or bfloat16.
        w: (N,), float32 or bfloat16, not necessarily the dtype of x.
        eps: Added to the mean square, greater than 0.
        bm: Rows of a block. A block that is longer than the array is cut down to it; the last
            block may be partial, because no row looks at another.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        The scaled rows, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, w does not hold one weight for each column, eps
            is not above 0, or bm is neither all rows nor a multiple of 8.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16"))
    check_dtype("w", w, ("float32", "bfloat16"))
    if w.shape != (N,):
        raise refusal(
            "the shape of w",
            w.shape,
            f"each of the {N} columns of x has one weight",
            f"pass shape ({N},)",
        )
    if not eps > 0:
        raise refusal("eps", eps, "a row of zeros needs something to divide by", "pass 1e-6")
    bm = block_size("bm", bm, M, SUBLANES)

    def kernel(x_ref: jax.Ref, w_ref: jax.Ref, o_ref: jax.Ref) -> None:
        rms_norm_kernel(x_ref, w_ref, o_ref, eps=eps)

    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(M, bm),),
        in_specs=[rows, pl.BlockSpec((1, N), lambda i: (0, 0))],  # the weights: once, for all
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="rms_norm",
    )(x, w.reshape(1, N))


def rms_norm_reference(x: jax.Array, w: jax.Array, eps: float = 1e-6) -> np.ndarray:
    """Return RMSNorm of each row in float64."""
    x64, w64 = np.asarray(x, np.float64), np.asarray(w, np.float64)
    return np.asarray(x64 / np.sqrt((x64 * x64).mean(axis=1, keepdims=True) + eps) * w64)


def cases() -> tuple[Case, ...]:
    """Return inputs: rows that blocks fill and do not, large and small, zeros, each dtype."""
    rng = np.random.default_rng(0)

    def operands(
        M: int, N: int, scale: float = 1.0, offset: float = 0.0, dtype: Any = np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        x = offset + scale * rng.standard_normal((M, N))
        return x.astype(dtype), (1 + rng.standard_normal(N) / 4).astype(dtype)

    def rtol(N: int) -> float:
        """N additions of squares, halved by the root, and six roundings around it."""
        return (N / 2 + 8) * 2.0**-24

    zeros = operands(16, 128)
    zeros[0][3] = 0.0
    mixed = (operands(64, 256, dtype=jnp.bfloat16)[0], operands(1, 256)[1])
    return (
        Case("blocks fill the rows", operands(128, 512), rtol(512)),
        Case("last block partial", operands(72, 200), rtol(200)),
        Case("one element", operands(1, 1), rtol(1), note="the sign, times the weight"),
        Case("one row", operands(1, 1000), rtol(1000)),
        Case("one column", operands(72, 1), rtol(1)),
        Case("a row of zeros", zeros, rtol(128), note="eps alone under the root"),
        Case("large offset", operands(64, 256, offset=1e4), rtol(256), note="no mean to subtract"),
        Case("large", operands(64, 256, 1e17), rtol(256), note="squares sum to 1e36"),
        Case("below eps", operands(64, 256, 1e-4), rtol(256), note="mean square 1e-8, eps 1e-6"),
        Case("bfloat16, float32 weights", mixed, BFLOAT16_RTOL + rtol(256)),
        Case("bfloat16", operands(128, 384, dtype=jnp.bfloat16), BFLOAT16_RTOL + rtol(384)),
    )
