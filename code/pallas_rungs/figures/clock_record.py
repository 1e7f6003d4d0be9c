"""The vector clocks of one simulated run: what each core and each copy did, and when it knew what.

The simulator's race detector gives every core, and every copy, a clock with a place for each of
them. While a record is taken, the functions that move those clocks note what they hold.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import jax
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as simulator
from jax._src.pallas.mosaic.interpret import race_detection_state as detector
from jax._src.pallas.mosaic.interpret import shared_memory as memory
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.figures.copy_record import simulated

Thread = tuple[int, int]
"""(device, core), or (number of a copy, 0); the simulator numbers copies from 100."""


@dataclass(frozen=True)
class Event:
    """One event of a kernel's body.

    Attributes:
        what: ``start`` of a copy, ``read``, ``write``, ``signal`` of a semaphore, or ``wait``: the
            end of a wait.
        thread: who did it.
        clock: the clock of that thread, just after.
        buffer: the simulator's number of the buffer that was read or written; else None.
        region: the indices that were read or written, as slices and integers; empty for all.
        semaphore: the simulator's number of the semaphore that was signalled or waited for.
        begins: the thread of the copy that was started.
    """

    what: str
    thread: Thread
    clock: tuple[int, ...]
    buffer: int | None = None
    region: tuple[Any, ...] = ()
    semaphore: int | None = None
    begins: Thread | None = None

    def before(self, other: Event) -> bool:
        """Whether this event happened before the other one, by their clocks."""
        pairs = list(zip(self.clock, other.clock, strict=True))
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@dataclass(frozen=True)
class ClockRecord:
    """What one run did, in the order in which the simulator did it.

    Attributes:
        events: of the kernel's body; the blocks that a grid moves are left out.
        reports: the messages of the simulator's own detector.
    """

    events: tuple[Event, ...]
    reports: tuple[str, ...]

    def races(self) -> tuple[tuple[Event, Event], ...]:
        """Pairs of accesses to the same elements, one of them a write, that no clock orders."""
        accesses = [e for e in self.events if e.what in ("read", "write")]
        return tuple(
            (a, b)
            for i, b in enumerate(accesses)
            for a in accesses[:i]
            if "write" in (a.what, b.what)
            and a.buffer == b.buffer
            and detector._ranges_overlap(a.region, b.region)
            and not (a.before(b) or b.before(a))
        )


def record_clocks(function: Callable[..., Any], *args: Any, **settings: Any) -> ClockRecord:
    """Run a function whose kernels ask for no interpreter, with races watched, and record clocks.

    The run goes on after a race.

    Args:
        function: calls kernels; it is traced anew.
        *args: its arguments.
        **settings: of `pltpu.InterpretParams`, but for ``detect_races`` and ``on_race``.

    Returns:
        The record, in the order in which the simulator was called.
    """
    params = pltpu.InterpretParams(**settings, detect_races=True, on_race="warn")
    events: list[Event] = []
    reports: list[str] = []
    with simulated(params), _noting(events, reports):
        jax.block_until_ready(jax.jit(lambda *a: function(*a))(*args))
    return ClockRecord(tuple(events), tuple(reports))


@contextlib.contextmanager
def _noting(events: list[Event], reports: list[str]) -> Iterator[None]:
    """Note events and reports while the simulator runs."""
    copies: dict[int, Thread] = {}  # by the identity of a copy's clock
    alive: list[Any] = []  # keeps those identities from being given away

    def started(copy: Any, *_: Any, **__: Any) -> None:
        thread = (copy.src_device_id, copy.src_local_core_id)
        begins = (copy.id, 0)
        copies[id(copy.clock)] = begins
        alive.append(copy)
        events.append(Event("start", thread, _ticks(copy.clock), begins=begins))

    def accessed(what: str) -> Callable[..., None]:
        def note(_: Any, thread: Any, clock: Any, key: Any, region: Any, source_info: Any) -> None:
            if source_info is not None:  # else the simulator moves a block of a grid by itself
                events.append(Event(what, thread, _ticks(clock), key[1], tuple(region)))

        return note

    def signalled(semaphore: Any, inc: Any, core: Any, clock: Any, logging_info: Any) -> None:
        sender = (logging_info.device_id, logging_info.local_core_id)
        thread = copies.get(id(clock), sender)
        events.append(Event("signal", thread, _ticks(clock), semaphore=semaphore.id))

    def waited(semaphore: Any, value: Any, core: Any, **_: Any) -> None:
        thread = semaphore.shared_memory.global_core_id_to_thread(core)
        clock = semaphore.shared_memory.clocks[thread]
        events.append(Event("wait", thread, _ticks(clock), semaphore=semaphore.id))

    log = mock.Mock()
    log.warning.side_effect = reports.append
    with contextlib.ExitStack() as stack:
        for owner, name, listener in (
            (simulator.DMA, "__init__", started),
            (detector.RaceDetectionState, "check_read", accessed("read")),
            (detector.RaceDetectionState, "check_write", accessed("write")),
            (memory.Semaphore, "signal", signalled),
            (memory.Semaphore, "wait", waited),
        ):
            stack.enter_context(_after(owner, name, listener))
        for name in ("logger", "logging"):  # reads are reported by one, writes by the other
            stack.enter_context(mock.patch.object(detector, name, log))
        yield


def _ticks(clock: Any) -> tuple[int, ...]:
    return tuple(clock.clock.tolist())


def _after(owner: Any, name: str, listener: Callable[..., None]) -> Any:
    """Call `listener` after a method, on its arguments."""
    original = getattr(owner, name)

    def called(*args: Any, **named: Any) -> Any:
        result = original(*args, **named)
        listener(*args, **named)
        return result

    return mock.patch.object(owner, name, called)
