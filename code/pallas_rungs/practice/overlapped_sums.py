"""Exercise: sum the columns of an array in HBM, and fetch the next block meanwhile."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.figures.copy_record import EndlessWaitError, record_of
from pallas_rungs.ladder import climb
from pallas_rungs.practice.judging import Hint, agree, close_to, has_nan, run

Kernel = Callable[[Any, Any, Any, Any], None]

BLOCKS = 5
BLOCK_ROWS = 8


def overlapped_sums(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Call ``kernel`` once, with x left in HBM and room for two of its blocks in VMEM.

    Args:
        kernel: takes ``x_ref``, (40, 128) in HBM, ``o_ref``, (1, 128) in VMEM, ``slots``,
            (2, 8, 128) in VMEM, and ``arrived``, two semaphores.
        x: (40, 128), float32.

    Returns:
        (1, 128), float32: whatever the kernel has put there.
    """
    sums: jax.Array = pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
        scratch_shapes=[
            pltpu.VMEM((2, BLOCK_ROWS, 128), jnp.float32),
            pltpu.SemaphoreType.DMA((2,)),
        ],
    )(x)
    return sums


def starter(x_ref: Any, o_ref: Any, slots: Any, arrived: Any) -> None:
    """Right numbers, no overlap: each block is fetched when it is needed, and waited for."""
    o_ref[...] = jnp.zeros_like(o_ref)

    @pl.loop(0, BLOCKS)
    def _(i: Any) -> None:
        rows = x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)]
        copy = pltpu.make_async_copy(rows, slots.at[0], arrived.at[0])
        copy.start()
        copy.wait()
        o_ref[...] += jnp.sum(slots[0], axis=0, keepdims=True)


def solution(x_ref: Any, o_ref: Any, slots: Any, arrived: Any) -> None:
    """Start the copy of block i + 1 before waiting for block i, in the other slot."""

    def fetch(i: Any) -> Any:
        rows = x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)]
        return pltpu.make_async_copy(rows, slots.at[i % 2], arrived.at[i % 2])

    o_ref[...] = jnp.zeros_like(o_ref)
    fetch(0).start()

    @pl.loop(0, BLOCKS)
    def _(i: Any) -> None:
        @pl.when(i + 1 < BLOCKS)
        def _() -> None:
            fetch(i + 1).start()

        fetch(i).wait()
        o_ref[...] += jnp.sum(slots[i % 2], axis=0, keepdims=True)


def one_slot(x_ref: Any, o_ref: Any, slots: Any, arrived: Any) -> None:
    """Wrong: the next block is fetched into the slot that is about to be summed."""

    def fetch(i: Any) -> Any:
        rows = x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)]
        return pltpu.make_async_copy(rows, slots.at[0], arrived.at[0])

    o_ref[...] = jnp.zeros_like(o_ref)
    fetch(0).start()

    @pl.loop(0, BLOCKS)
    def _(i: Any) -> None:
        @pl.when(i + 1 < BLOCKS)
        def _() -> None:
            fetch(i + 1).start()

        fetch(i).wait()
        o_ref[...] += jnp.sum(slots[0], axis=0, keepdims=True)


def last_block_left_out(x_ref: Any, o_ref: Any, slots: Any, arrived: Any) -> None:
    """Wrong: the loop ends where there is no next block, and the last one is never summed."""

    def fetch(i: Any) -> Any:
        rows = x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)]
        return pltpu.make_async_copy(rows, slots.at[i % 2], arrived.at[i % 2])

    o_ref[...] = jnp.zeros_like(o_ref)
    fetch(0).start()

    @pl.loop(0, BLOCKS - 1)
    def _(i: Any) -> None:
        fetch(i + 1).start()
        fetch(i).wait()
        o_ref[...] += jnp.sum(slots[i % 2], axis=0, keepdims=True)


def waits_afterwards(x_ref: Any, o_ref: Any, slots: Any, arrived: Any) -> None:
    """Wrong: a block is summed first, and waited for after that."""

    def fetch(i: Any) -> Any:
        rows = x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)]
        return pltpu.make_async_copy(rows, slots.at[i % 2], arrived.at[i % 2])

    o_ref[...] = jnp.zeros_like(o_ref)
    fetch(0).start()

    @pl.loop(0, BLOCKS)
    def _(i: Any) -> None:
        @pl.when(i + 1 < BLOCKS)
        def _() -> None:
            fetch(i + 1).start()

        o_ref[...] += jnp.sum(slots[i % 2], axis=0, keepdims=True)
        fetch(i).wait()


def one_semaphore(x_ref: Any, o_ref: Any, slots: Any, arrived: Any) -> None:
    """Wrong: two copies under way signal the same semaphore, so a wait may be for the other one."""

    def fetch(i: Any) -> Any:
        rows = x_ref.at[pl.ds(i * BLOCK_ROWS, BLOCK_ROWS)]
        return pltpu.make_async_copy(rows, slots.at[i % 2], arrived.at[0])

    o_ref[...] = jnp.zeros_like(o_ref)
    fetch(0).start()

    @pl.loop(0, BLOCKS)
    def _(i: Any) -> None:
        @pl.when(i + 1 < BLOCKS)
        def _() -> None:
            fetch(i + 1).start()

        fetch(i).wait()
        o_ref[...] += jnp.sum(slots[i % 2], axis=0, keepdims=True)


WRONG: tuple[tuple[Kernel, str], ...] = (
    (starter, "never more than 1 copy under way"),
    (one_slot, "block 0 was overwritten before it was summed"),
    (last_block_left_out, "the last block is missing from the sum"),
    (waits_afterwards, "one semaphore for each slot"),
    (one_semaphore, "one semaphore for each slot"),
)


def check(kernel: Kernel) -> None:
    """Run ``kernel`` in the interpreter and in the simulator, and look at when it copies.

    Args:
        kernel: takes ``x_ref``, f32[40, 128] in HBM, ``o_ref``, f32[1, 128], ``slots``,
            f32[2, 8, 128], and ``arrived``, two semaphores.

    Raises:
        AssertionError: the sums are wrong on some rung, a copy is not waited for, or the next
            block is never fetched while one is summed; says which.
    """
    x = np.arange(BLOCKS * BLOCK_ROWS * 128, dtype=np.float32).reshape(-1, 128) % 97
    blocks = x.reshape(BLOCKS, BLOCK_ROWS, 128).sum(axis=1)
    call = "overlapped_sums(kernel, x)"
    agree(
        run(lambda x: overlapped_sums(kernel, x), x, call=call),
        blocks.sum(axis=0, keepdims=True),
        call=call,
        rtol=0,
        atol=0,
        hints=(
            Hint("the output is read before it is cleared: write zeros first", has_nan),
            Hint(
                "the last block is missing from the sum: it has no next one, but it counts",
                close_to(blocks[:-1].sum(axis=0, keepdims=True)),
            ),
            Hint(
                "block 0 was overwritten before it was summed: fetch the next one into the other "
                "slot",
                close_to((blocks[1:].sum(axis=0) + blocks[-1])[None]),
            ),
        ),
    )
    try:
        record = record_of(lambda x: overlapped_sums(kernel, x), x)
    except EndlessWaitError as error:
        raise AssertionError(
            f"{call} would never end: {error}\nHint: wait for block i where block i was sent"
        ) from error
    unawaited = sum(copy.end is None for copy in record.copies)
    if unawaited:
        raise AssertionError(
            f"{unawaited} of {len(record.copies)} copies are never waited for\n"
            "Hint: every start needs its wait, also that of the last block"
        )
    if record.in_flight(inwards=True) < 2:
        raise AssertionError(
            "right, but never more than 1 copy under way: nothing is fetched while a block is "
            "summed\nHint: start the copy of block i + 1 before you wait for block i"
        )
    report = climb(
        lambda x: overlapped_sums(kernel, x),
        x,
        reference=lambda x: x.sum(axis=0, keepdims=True),
        rungs=("simulate",),
    )
    if not report.passed:
        raise AssertionError(
            f"right where a copy is done as soon as it starts, and not elsewhere:\n{report}\n"
            "Hint: read a slot after waiting for its own copy, with one semaphore for each slot"
        )
