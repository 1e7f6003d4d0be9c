"""LayerNorm of every row on a GPU, through Triton: the body that was written for a TPU."""

from functools import partial

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pltriton

from pallas_rungs.kernels.layer_norm import layer_norm_kernel


def layer_norm_by_triton(
    x: jax.Array,
    gamma: jax.Array,
    beta: jax.Array,
    *,
    eps: float = 1e-5,
    bm: int = 1,
    num_warps: int = 8,
    interpret: bool = False,
) -> jax.Array:
    """Return each row at mean 0 and variance 1, scaled by gamma and shifted by beta.

    Args:
        x: (M, N), float32, float16 or bfloat16; N and bm are powers of two, as Triton wants them.
        gamma: (N,), float32.
        beta: (N,), float32.
        eps: Added to the variance.
        bm: Rows of a block; the last block may be partial.
        num_warps: Warps of 32 threads that share a block.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        The rows, computed in float32, (M, N), of the dtype of x.
    """
    M, N = x.shape
    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))
    one_row = pl.BlockSpec((1, N), lambda i: (0, 0))
    return pl.pallas_call(
        partial(layer_norm_kernel, eps=eps),
        grid=(pl.cdiv(M, bm),),
        in_specs=[rows, one_row, one_row],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltriton.CompilerParams(num_warps=num_warps),
        interpret=interpret,
    )(x, gamma.reshape(1, N), beta.reshape(1, N))
