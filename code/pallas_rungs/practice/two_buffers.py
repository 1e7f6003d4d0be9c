"""Exercise: stream blocks through two buffers without refilling one that is still being sent."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.figures.copy_record import EndlessWaitError, record_of
from pallas_rungs.ladder import Report, climb

Kernel = Callable[[Any, Any, Any, Any, Any], None]

SHORT_CLOCK = {"detect_races": True}
"""The race detector as it is by default; that of the ladder has more counters."""


def streamed(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Call ``kernel`` once, with both arrays in HBM and two buffers of eight rows in VMEM.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, (32, 128) in HBM, ``buffers``, (2, 8, 128), and the
            semaphores ``arrived`` and ``sent``, two of each.
        x: (32, 128), float32.

    Returns:
        (32, 128), float32: whatever the kernel has copied there.
    """
    in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    result: jax.Array = pl.pallas_call(
        kernel,
        in_specs=[in_hbm],
        out_specs=in_hbm,
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
        scratch_shapes=[
            pltpu.VMEM((2, 8, 128), jnp.float32),
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.DMA((2,)),
        ],
    )(x)
    return result


def fetch(x_ref: Any, buffers: Any, arrived: Any, i: int) -> Any:
    """Return the copy of block i of x into its buffer."""
    return pltpu.make_async_copy(x_ref.at[pl.ds(8 * i, 8)], buffers.at[i % 2], arrived.at[i % 2])


def send(buffers: Any, o_ref: Any, sent: Any, i: int) -> Any:
    """Return the copy of a buffer to block i of o."""
    return pltpu.make_async_copy(buffers.at[i % 2], o_ref.at[pl.ds(8 * i, 8)], sent.at[i % 2])


def starter(x_ref: Any, o_ref: Any, buffers: Any, arrived: Any, sent: Any) -> None:
    """Where to begin: it waits for all that was sent at the very end."""
    fetch(x_ref, buffers, arrived, 0).start()
    for i in range(4):
        if i < 3:
            fetch(x_ref, buffers, arrived, i + 1).start()
        fetch(x_ref, buffers, arrived, i).wait()
        send(buffers, o_ref, sent, i).start()
    for i in range(4):
        send(buffers, o_ref, sent, i).wait()


def solution(x_ref: Any, o_ref: Any, buffers: Any, arrived: Any, sent: Any) -> None:
    """Before a buffer is filled again, wait for the copy that was sent from it."""
    fetch(x_ref, buffers, arrived, 0).start()
    for i in range(4):
        if i > 0:
            send(buffers, o_ref, sent, i - 1).wait()
        if i < 3:
            fetch(x_ref, buffers, arrived, i + 1).start()
        fetch(x_ref, buffers, arrived, i).wait()
        send(buffers, o_ref, sent, i).start()
    send(buffers, o_ref, sent, 3).wait()


def waits_after_the_refill(x_ref: Any, o_ref: Any, buffers: Any, arrived: Any, sent: Any) -> None:
    """Wrong: the two lines in the other order; nothing but a race tells."""
    fetch(x_ref, buffers, arrived, 0).start()
    for i in range(4):
        if i < 3:
            fetch(x_ref, buffers, arrived, i + 1).start()
        if i > 0:
            send(buffers, o_ref, sent, i - 1).wait()
        fetch(x_ref, buffers, arrived, i).wait()
        send(buffers, o_ref, sent, i).start()
    send(buffers, o_ref, sent, 3).wait()


def sends_before_it_arrived(x_ref: Any, o_ref: Any, buffers: Any, arrived: Any, sent: Any) -> None:
    """Wrong: what was fetched is waited for after it was sent."""
    for i in range(4):
        fetch(x_ref, buffers, arrived, i).start()
        send(buffers, o_ref, sent, i).start()
        fetch(x_ref, buffers, arrived, i).wait()
        send(buffers, o_ref, sent, i).wait()


def one_after_another(x_ref: Any, o_ref: Any, buffers: Any, arrived: Any, sent: Any) -> None:
    """Wrong: sound, and slow, since no two copies are ever under way together."""
    for i in range(4):
        fetch(x_ref, buffers, arrived, i).start()
        fetch(x_ref, buffers, arrived, i).wait()
        send(buffers, o_ref, sent, i).start()
        send(buffers, o_ref, sent, i).wait()


WRONG: tuple[tuple[Kernel, str], ...] = (
    (starter, "holds the block that was fetched into the same buffer"),
    (waits_after_the_refill, "A clock with room for each copy"),
    (sends_before_it_arrived, "before the copy into it was waited for"),
    (one_after_another, "never more than 1 copy under way"),
)


def check(kernel: Kernel) -> Report:
    """Run ``kernel`` in both interpreters, copies late and early, and look for races.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, f32[32, 128] in HBM, ``buffers``, f32[2, 8, 128] in
            VMEM, and ``arrived`` and ``sent``, arrays of two semaphores each.

    Returns:
        The report of the interpreter and the simulator, when every setting passed.

    Raises:
        AssertionError: numbers are wrong, copies race, or no two of them are ever under way
            together; says which, with a hint if the mistake is a known one.
    """
    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)

    def call(x: jax.Array) -> jax.Array:
        return streamed(kernel, x)

    try:
        record = record_of(call, x)
    except EndlessWaitError as error:
        raise AssertionError(f"streamed(kernel, x) would never end: {error}") from error
    report = climb(
        call,
        x,
        reference=lambda x: x,
        rungs=("interpret", "simulate"),
        simulations={"short clock": SHORT_CLOCK},
        name=getattr(kernel, "__name__", "kernel"),
    )
    if not report.passed:
        raise AssertionError(f"not healthy yet:\n{report}{_hint(report)}")
    if record.in_flight() < 2:
        raise AssertionError(
            f"right, but never more than {record.in_flight()} copy under way at a time\n"
            "Hint: start to fetch the next block before you wait for the one that you need"
        )
    return report


def _hint(report: Report) -> str:
    """Tell the mistake by the first setting that noticed it."""
    noticed = {
        setting: report.of("simulate", setting).status not in ("passed", "unchecked")
        for setting in ("default", "short clock", "races")
    }
    if noticed["default"]:
        return (
            "\nHint: where copies happen as late as they may, a block of the result holds the "
            "block that was fetched into the same buffer after it"
        )
    if noticed["short clock"]:
        return "\nHint: a buffer is sent before the copy into it was waited for"
    if noticed["races"]:
        return (
            "\nHint: A clock with room for each copy sees what the default cannot: a buffer is "
            "refilled while a copy out of it is under way"
        )
    return ""
