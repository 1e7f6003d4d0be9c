"""A matrix times a number, with every copy of its blocks started and awaited by hand."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import SUBLANES, block_size, check_blocks_divide, check_matrix

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def scale_double_buffered_kernel(
    factor: float,
    x_ref: jax.Ref,
    o_ref: jax.Ref,
    x_slots: jax.Ref,
    o_slots: jax.Ref,
    arrived: jax.Ref,
    left: jax.Ref,
) -> None:
    """Scale x, (M, N) in HBM, block by block: while one is computed, the next is on its way.

    ``x_slots`` and ``o_slots`` hold two blocks each, (2, bm, N) in VMEM; ``arrived`` and ``left``
    hold one semaphore for each slot.
    """
    _, bm, _ = x_slots.shape
    steps = x_ref.shape[0] // bm

    def fetch(i: Any) -> Any:
        slot, rows = i % 2, pl.ds(i * bm, bm)
        return pltpu.make_async_copy(x_ref.at[rows], x_slots.at[slot], arrived.at[slot])

    def send(i: Any) -> Any:
        slot, rows = i % 2, pl.ds(i * bm, bm)
        return pltpu.make_async_copy(o_slots.at[slot], o_ref.at[rows], left.at[slot])

    fetch(0).start()  # prologue: nothing to compute yet

    def step(i: jax.Array, carry: None) -> None:
        @pl.when(i + 1 < steps)
        def _() -> None:
            fetch(i + 1).start()  # into the slot that the last step has finished with

        fetch(i).wait()

        @pl.when(i >= 2)
        def _() -> None:
            send(i - 2).wait()  # its slot is about to be written again

        slot = i % 2
        o_slots[slot] = (x_slots[slot].astype(jnp.float32) * factor).astype(o_ref.dtype)
        send(i).start()

    jax.lax.fori_loop(0, steps, step, None)
    for i in range(max(steps - 2, 0), steps):  # epilogue: what is still on its way out
        send(i).wait()


def scale_double_buffered(
    x: jax.Array, factor: float, *, bm: int = 256, interpret: Any = False
) -> jax.Array:
    """Multiply x by a number, in one program that moves its own blocks.

    Args:
        x: (M, N), float32 or bfloat16, left in HBM.
        factor: A Python number, fixed when the call is traced.
        bm: Rows of a block, which must divide M: a copy has one size, fixed when it is traced.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        factor * x, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, bm is neither all rows nor a multiple of 8, or
            bm does not divide M.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16"))
    bm = block_size("bm", bm, M, SUBLANES)
    check_blocks_divide(
        "bm", bm, "M", M, multiple=SUBLANES, because="the kernel copies whole blocks"
    )

    in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    two_blocks = pltpu.VMEM((2, bm, N), x.dtype)
    return pl.pallas_call(
        functools.partial(scale_double_buffered_kernel, factor),
        in_specs=[in_hbm],
        out_specs=in_hbm,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        scratch_shapes=[
            two_blocks,
            two_blocks,
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.DMA((2,)),
        ],
        interpret=interpret,
    )(x)


def scale_double_buffered_reference(x: jax.Array, factor: float) -> np.ndarray:
    """Return factor * x in float64."""
    return np.asarray(factor * np.asarray(x, np.float64))


def cases() -> tuple[Case, ...]:
    """Return inputs: one block, two and an odd number of them, odd widths, each dtype."""
    rng = np.random.default_rng(0)

    def matrix(M: int, N: int, dtype: Any = np.float32) -> np.ndarray:
        return rng.standard_normal((M, N)).astype(dtype)

    # The factor and the product are rounded to float32 once each.
    rtol = 2 * 2.0**-24
    return (
        Case("two blocks", (matrix(512, 128), -1.5), rtol=rtol, atol=0),
        Case("five blocks", (matrix(1280, 128), 0.1), rtol=rtol, atol=0),
        Case("one block, odd", (matrix(5, 300), 3.0), rtol=rtol, atol=0),
        Case("one element", (matrix(1, 1), 2.0), rtol=rtol, atol=0),
        Case("bfloat16", (matrix(768, 128, jnp.bfloat16), 0.1), rtol=BFLOAT16_RTOL, atol=0),
    )
