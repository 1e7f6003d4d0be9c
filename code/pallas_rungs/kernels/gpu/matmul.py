"""Matrix products on a GPU: for Triton, for Hopper's tensor cores and for Blackwell's."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import triton as pltriton


def matmul_steps_kernel(x_ref: Any, y_ref: Any, o_ref: Any, *, bk: int) -> None:
    """Write one block of the product, bk columns of x and rows of y at a time."""

    def step(k: Any, acc: jax.Array) -> jax.Array:
        at = pl.ds(k * bk, bk)
        return acc + jnp.dot(x_ref[:, at], y_ref[at, :], preferred_element_type=jnp.float32)

    acc = lax.fori_loop(0, x_ref.shape[1] // bk, step, jnp.zeros(o_ref.shape, jnp.float32))
    o_ref[...] = acc.astype(o_ref.dtype)


def matmul_by_triton(
    x: jax.Array, y: jax.Array, *, block: int = 64, bk: int = 32, interpret: bool = False
) -> jax.Array:
    """Return x @ y through Triton, which chooses the tensor cores' instruction itself.

    Args:
        x: (M, K), float16.
        y: (K, N), float16.
        block: Rows and columns of a block of the result; it divides M and N.
        bk: What is multiplied at a time; it divides K.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x @ y, accumulated in float32, (M, N), float16.
    """
    (M, K), (_, N) = x.shape, y.shape
    return pl.pallas_call(
        partial(matmul_steps_kernel, bk=bk),
        grid=(M // block, N // block),
        in_specs=[
            pl.BlockSpec((block, K), lambda i, j: (i, 0)),
            pl.BlockSpec((K, block), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltriton.CompilerParams(num_warps=4, num_stages=3),
        interpret=interpret,
    )(x, y)


TILES: Any = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))  # type: ignore[abstract]
"""How the tensor cores of both generations want float16 in shared memory."""


def matmul_by_wgmma(x: jax.Array, y: jax.Array, *, interpret: Any = None) -> jax.Array:
    """Return x @ y by Hopper's tensor cores, in one block: a warpgroup and its `wgmma`.

    Args:
        x: (64, K), float16; K is a multiple of 64.
        y: (K, N), float16; N is a multiple of 64.
        interpret: Passed on to ``plgpu.kernel``.

    Returns:
        x @ y, (64, N), float32.
    """
    out = jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32)

    def body(x_gmem: Any, y_gmem: Any, o_gmem: Any, x_smem: Any, y_smem: Any, loaded: Any) -> None:
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
        plgpu.copy_gmem_to_smem(y_gmem, y_smem, loaded)
        plgpu.barrier_wait(loaded)

        def multiply(acc: Any) -> jax.Array:
            plgpu.wgmma(acc, x_smem, y_smem)
            result: jax.Array = acc[...]
            return result

        o_gmem[...] = pl.run_scoped(multiply, plgpu.ACC(out.shape, out.dtype))  # type: ignore[attr-defined]

    call = plgpu.kernel(
        body,
        out_type=out,
        scratch_types=[
            plgpu.SMEM(x.shape, x.dtype, transforms=TILES),
            plgpu.SMEM(y.shape, y.dtype, transforms=TILES),
            plgpu.Barrier(num_arrivals=2),
        ],
        interpret=interpret,
    )
    result: jax.Array = call(x, y)
    return result


def matmul_by_tcgen05(x: jax.Array, y: jax.Array, *, interpret: Any = None) -> jax.Array:
    """Return x @ y by Blackwell's tensor cores, whose accumulator is in a memory of its own.

    Args:
        x: (128, K), float16; K is a multiple of 64.
        y: (K, N), float16; N is a multiple of 64.
        interpret: Passed on to ``plgpu.kernel``.

    Returns:
        x @ y, (128, N), float32.
    """
    out = jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32)

    def body(
        x_gmem: Any,
        y_gmem: Any,
        o_gmem: Any,
        x_smem: Any,
        y_smem: Any,
        acc_tmem: Any,
        loaded: Any,
        multiplied: Any,
    ) -> None:
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
        plgpu.copy_gmem_to_smem(y_gmem, y_smem, loaded)
        plgpu.barrier_wait(loaded)
        plgpu.tcgen05_mma(acc_tmem, x_smem, y_smem, multiplied, accumulate=False)
        plgpu.barrier_wait(multiplied)
        o_gmem[...] = plgpu.async_load_tmem(acc_tmem)

    call = plgpu.kernel(
        body,
        out_type=out,
        scratch_types=[
            plgpu.SMEM(x.shape, x.dtype, transforms=TILES),
            plgpu.SMEM(y.shape, y.dtype, transforms=TILES),
            plgpu.TMEM(out.shape, out.dtype),
            plgpu.Barrier(num_arrivals=2),
            plgpu.Barrier(orders_tensor_core=True),
        ],
        interpret=interpret,
    )
    result: jax.Array = call(x, y)
    return result


def matmul_tiles_by_wgmma(
    x: jax.Array,
    y: jax.Array,
    *,
    block: tuple[int, int] = (128, 128),
    bk: int = 64,
    steps: int = 4,
    interpret: Any = None,
) -> jax.Array:
    """Return x @ y by Hopper's tensor cores, block by block, copies running ahead of products.

    Args:
        x: (M, K), float16.
        y: (K, N), float16.
        block: (bm, bn), multiples of 64; bm divides M and bn divides N.
        bk: What is multiplied at a time: 64, or a multiple; it divides K.
        steps: Blocks of x and of y that shared memory holds.
        interpret: Passed on to ``plgpu.kernel``.

    Returns:
        x @ y, accumulated in float32, (M, N), float16.
    """
    (M, K), (_, N) = x.shape, y.shape
    bm, bn = block

    def body(x_gmem: Any, y_gmem: Any, o_gmem: Any, o_smem: Any) -> None:
        rows = pl.ds(lax.axis_index("i") * bm, bm)
        columns = pl.ds(lax.axis_index("j") * bn, bn)

        def multiplied(acc: Any) -> jax.Array:
            def step(at: Any, x_smem: Any, y_smem: Any) -> None:
                plgpu.wgmma(acc, x_smem, y_smem)
                plgpu.wgmma_wait(1)  # the product before this one has read its blocks

            plgpu.emit_pipeline(
                step,
                grid=(K // bk,),
                in_specs=[
                    plgpu.BlockSpec((bm, bk), lambda k: (0, k), transforms=TILES, delay_release=1),
                    plgpu.BlockSpec((bk, bn), lambda k: (k, 0), transforms=TILES, delay_release=1),
                ],
                max_concurrent_steps=steps,
            )(x_gmem.at[rows], y_gmem.at[:, columns])
            result: jax.Array = acc[...]
            return result

        product = pl.run_scoped(multiplied, plgpu.ACC((bm, bn), jnp.float32))  # type: ignore[attr-defined]
        o_smem[...] = product.astype(o_smem.dtype)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[rows, columns])
        plgpu.wait_smem_to_gmem(0)

    call = plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((M, N), x.dtype),
        grid=(M // bm, N // bn),
        grid_names=("i", "j"),
        scratch_types=[plgpu.SMEM((bm, bn), x.dtype, transforms=TILES)],
        interpret=interpret,
    )
    result: jax.Array = call(x, y)
    return result
