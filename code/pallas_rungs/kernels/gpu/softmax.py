"""Softmax of every row on a GPU, through each of Pallas's two backends."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import triton as pltriton

from pallas_rungs.kernels.softmax import softmax_kernel


def softmax_by_triton(
    x: jax.Array, *, bm: int = 64, num_warps: int = 4, interpret: bool = False
) -> jax.Array:
    """Return the softmax of each row: the kernel written for a TPU, through Triton.

    Args:
        x: (M, N), float32; N and bm are powers of two, as Triton wants them.
        bm: Rows of a block; the last block may be partial.
        num_warps: Warps of 32 threads that share a block.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        exp(x) / sum(exp(x)) along the rows, (M, N), float32.
    """
    M, N = x.shape
    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))
    return pl.pallas_call(
        softmax_kernel,
        grid=(pl.cdiv(M, bm),),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltriton.CompilerParams(num_warps=num_warps),
        interpret=interpret,
    )(x)


def softmax_rows_kernel(x_ref: Any, o_ref: Any) -> None:
    """Write the softmax of bm whole rows, with the layout that Mosaic GPU reduces rows in."""
    x = plgpu.load(x_ref, layout=plgpu.Layout.WGMMA, optimized=False)
    highest = lax.broadcast_in_dim(jnp.max(x, axis=1), x.shape, [0])
    e = jnp.exp(x - highest)
    o_ref[...] = e / lax.broadcast_in_dim(jnp.sum(e, axis=1), x.shape, [0])


def softmax_by_mosaic_gpu(
    x: jax.Array,
    *,
    bm: int = 64,
    kernel: Any = softmax_rows_kernel,
    compiler_params: plgpu.CompilerParams | None = None,
    interpret: Any = None,
) -> jax.Array:
    """Return the softmax of each row through Mosaic GPU, one warpgroup for each block.

    Args:
        x: (M, N), float32.
        bm: Rows of a block, a multiple of 64 that divides M.
        kernel: The body, called with the rows of x and of the output in global memory.
        compiler_params: Passed on to ``plgpu.kernel``.
        interpret: Passed on to ``plgpu.kernel``.

    Returns:
        exp(x) / sum(exp(x)) along the rows, (M, N), float32.
    """

    def on_its_rows(x_gmem: Any, o_gmem: Any) -> None:
        rows = pl.ds(lax.axis_index("i") * bm, bm)
        kernel(x_gmem.at[rows], o_gmem.at[rows])

    call = plgpu.kernel(
        on_its_rows,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // bm,),
        grid_names=("i",),
        compiler_params=compiler_params,
        interpret=interpret,
    )
    result: jax.Array = call(x)
    return result
