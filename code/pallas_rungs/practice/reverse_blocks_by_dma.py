"""Exercise: reverse the order of an array's blocks with copies alone."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.figures.copy_record import EndlessWaitError, record_of
from pallas_rungs.practice.judging import Hint, agree, close_to, run

Kernel = Callable[[Any, Any, Any], None]

BLOCKS = 4
BLOCK_ROWS = 8


def reverse_blocks(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Call ``kernel`` once, with both arrays in HBM and one semaphore for each block.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, (32, 128) in HBM, and ``done``, four semaphores.
        x: (32, 128), float32.

    Returns:
        (32, 128), float32: whatever the kernel has copied there.
    """
    in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    reversed_: jax.Array = pl.pallas_call(
        kernel,
        in_specs=[in_hbm],
        out_specs=in_hbm,
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
        scratch_shapes=[pltpu.SemaphoreType.DMA((BLOCKS,))],
    )(x)
    return reversed_


def starter(x_ref: Any, o_ref: Any, done: Any) -> None:
    """Where to begin: one copy of the whole array, which reverses nothing."""
    copy = pltpu.make_async_copy(x_ref, o_ref, done.at[0])
    copy.start()
    copy.wait()


def solution(x_ref: Any, o_ref: Any, done: Any) -> None:
    """Start all four copies, then wait for all four."""
    copies = [
        pltpu.make_async_copy(
            x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)],
            o_ref.at[pl.ds((BLOCKS - 1 - i) * BLOCK_ROWS, BLOCK_ROWS)],
            done.at[i],
        )
        for i in range(BLOCKS)
    ]
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.wait()


def one_after_another(x_ref: Any, o_ref: Any, done: Any) -> None:
    """Wrong: each copy is awaited before the next one is started."""
    for i in range(BLOCKS):
        copy = pltpu.make_async_copy(
            x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)],
            o_ref.at[pl.ds((BLOCKS - 1 - i) * BLOCK_ROWS, BLOCK_ROWS)],
            done.at[i],
        )
        copy.start()
        copy.wait()


def never_waits(x_ref: Any, o_ref: Any, done: Any) -> None:
    """Wrong: the kernel ends while its copies may still be under way."""
    for i in range(BLOCKS):
        pltpu.make_async_copy(
            x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)],
            o_ref.at[pl.ds((BLOCKS - 1 - i) * BLOCK_ROWS, BLOCK_ROWS)],
            done.at[i],
        ).start()


def waits_for_the_first_four_times(x_ref: Any, o_ref: Any, done: Any) -> None:
    """Wrong: four waits, all of them for the semaphore of the first copy."""
    for i in range(BLOCKS):
        pltpu.make_async_copy(
            x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)],
            o_ref.at[pl.ds((BLOCKS - 1 - i) * BLOCK_ROWS, BLOCK_ROWS)],
            done.at[i],
        ).start()
    here = x_ref.at[pl.ds(0, BLOCK_ROWS)]
    for _ in range(BLOCKS):
        pltpu.make_async_copy(here, here, done.at[0]).wait()


def copies_block_numbers_for_rows(x_ref: Any, o_ref: Any, done: Any) -> None:
    """Wrong: the slices begin at row 3 - i, where a ref counts rows and not blocks."""
    for i in range(BLOCKS):
        copy = pltpu.make_async_copy(
            x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)],
            o_ref.at[pl.ds(BLOCKS - 1 - i, BLOCK_ROWS)],
            done.at[i],
        )
        copy.start()
        copy.wait()


WRONG: tuple[tuple[Kernel, str], ...] = (
    (one_after_another, "never more than 1 copy under way"),
    (never_waits, "4 of 4 copies are never waited for"),
    (waits_for_the_first_four_times, "waits for a copy that nobody has started"),
    (copies_block_numbers_for_rows, "rows, not blocks"),
)


def check(kernel: Kernel) -> None:
    """Run ``kernel`` in the interpreter, then in the simulator, and look at its copies.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, f32[32, 128] in HBM, and ``done``, an array of four
            semaphores.

    Raises:
        AssertionError: a block is not where it belongs, a copy is not waited for, or the copies
            are never under way together; says which.
    """
    x = np.arange(BLOCKS * BLOCK_ROWS * 128, dtype=np.float32).reshape(-1, 128)
    want = x.reshape(BLOCKS, BLOCK_ROWS, 128)[::-1].reshape(x.shape)
    call = "reverse_blocks(kernel, x)"
    agree(
        run(lambda x: reverse_blocks(kernel, x), x, call=call),
        want,
        call=call,
        rtol=0,
        atol=0,
        hints=(
            Hint("nothing was reversed: give each block a copy of its own", close_to(x)),
            Hint(
                "pl.ds on a ref in HBM counts rows, not blocks: multiply by the rows of a block",
                lambda got, _: bool(np.isnan(got).any()),
            ),
        ),
    )
    try:
        record = record_of(lambda x: reverse_blocks(kernel, x), x)
    except EndlessWaitError as error:
        raise AssertionError(
            f"{call} would never end: {error}\n"
            "Hint: a wait takes from one semaphore what one copy has given to it; give each copy "
            "its own semaphore and wait for that"
        ) from error
    unawaited = [copy for copy in record.copies if copy.end is None]
    if unawaited:
        raise AssertionError(
            f"{len(unawaited)} of {len(record.copies)} copies are never waited for\n"
            "Hint: the interpreter carries a copy out when it starts; on a chip the kernel may end "
            "before the copy does. Call .wait() on each"
        )
    if record.in_flight() < BLOCKS:
        raise AssertionError(
            f"right, but never more than {record.in_flight()} copy under way at a time\n"
            "Hint: start all copies before you wait for the first"
        )
