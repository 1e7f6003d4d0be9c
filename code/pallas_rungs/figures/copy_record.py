"""The copies and accesses of a kernel, in the order in which the TPU simulator carries them out.

The simulator calls one function for each copy that a kernel starts, for each wait, and for each
read or write of a ref. While a record is taken, those functions note what they are given.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import jax
from jax._src import dispatch
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as simulator
from jax._src.pallas.mosaic.interpret.utils import to_range
from jax.experimental.pallas import tpu as pltpu

HBM = frozenset({"any", "hbm"})


class EndlessWaitError(Exception):
    """A kernel waits for a copy that it has not started; the simulator would wait with it."""


@dataclass(frozen=True)
class Place:
    """A part of a buffer.

    Attributes:
        space: the memory that holds it, ``hbm``, ``vmem`` or another.
        buffer: the simulator's number of the buffer; numbers grow in order of allocation.
        starts: first index along each dimension that the kernel sliced or indexed.
    """

    space: str
    buffer: int
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Copy:
    """One asynchronous copy.

    Attributes:
        source: where it reads.
        target: where it writes.
        semaphore: the simulator's number of the semaphore that it signals.
        core: the core that started it.
        start: number of the event that started it.
        end: number of the event in which somebody waited for it; None if nobody did.
    """

    source: Place
    target: Place
    semaphore: int
    core: int
    start: int
    end: int | None = None

    @property
    def inwards(self) -> bool:
        """True when it leaves HBM."""
        return self.source.space in HBM and self.target.space not in HBM


@dataclass(frozen=True)
class Access:
    """One read or write of a ref by the kernel's body.

    Attributes:
        place: what was read or written.
        writes: false for a read.
        core: the core that did it.
        at: number of the event.
    """

    place: Place
    writes: bool
    core: int
    at: int


@dataclass(frozen=True)
class Record:
    """What one run did, as numbered events: copies started, waits, reads and writes.

    Attributes:
        copies: in the order of their starts.
        accesses: in order.
        events: how many events there were.
    """

    copies: tuple[Copy, ...]
    accesses: tuple[Access, ...]
    events: int

    def in_flight(self, *, inwards: bool | None = None) -> int:
        """Return the largest number of copies that were under way at one time.

        Args:
            inwards: only copies out of HBM if true, only other ones if false, all if None.
        """
        asked = [c for c in self.copies if inwards in (None, c.inwards)]
        return max(
            (
                sum(c.start <= at < (self.events if c.end is None else c.end) for c in asked)
                for at in range(self.events)
            ),
            default=0,
        )


Note = Copy | Access | tuple[int, int]
"""What is noted: a copy, an access, or a wait as (semaphore, core)."""


def record_of(function: Callable[..., Any], *args: Any, **settings: Any) -> Record:
    """Run a function whose kernels ask for no interpreter in the simulator, and record it.

    Args:
        function: calls kernels; it is traced anew.
        *args: its arguments.
        **settings: of `pltpu.InterpretParams`. Copies are carried out when they start, unless
            ``dma_execution_mode`` says otherwise.

    Returns:
        The record of all cores, in the order in which the simulator was called.

    Raises:
        EndlessWaitError: the kernel waits for a copy that it has not started.
        Exception: what the simulator raises.
    """
    params = pltpu.InterpretParams(**{"dma_execution_mode": "eager", **settings})
    endless: list[str] = []
    with simulated(params):
        try:
            with _notes(endless) as notes:
                jax.block_until_ready(jax.jit(lambda *a: function(*a))(*args))
        except Exception as error:
            if endless:
                raise EndlessWaitError(endless[0]) from error
            raise
    return _put_together(notes)


@contextlib.contextmanager
def simulated(params: pltpu.InterpretParams) -> Iterator[None]:
    """Run what is traced inside in the simulator, with fresh state before it and after it.

    What JAX logs when a callback raises is left out: the exception says it too.

    Args:
        params: the simulator's settings.
    """
    pltpu.reset_tpu_interpret_mode_state()
    logger = logging.getLogger("jax._src.callback")
    before, logger.disabled = logger.disabled, True
    try:
        with pltpu.force_tpu_interpret_mode(params):
            yield
    finally:
        with contextlib.suppress(Exception):
            dispatch.runtime_tokens.block_until_ready()
        dispatch.runtime_tokens.clear()
        logger.disabled = before
        pltpu.reset_tpu_interpret_mode_state()


def _put_together(notes: list[Note]) -> Record:
    """Number the events and match each wait with the oldest copy of its semaphore and core."""
    copies: list[Copy] = []
    accesses: list[Access] = []
    for at, note in enumerate(notes):
        match note:
            case Copy():
                copies.append(replace(note, start=at))
            case Access():
                accesses.append(replace(note, at=at))
            case (semaphore, core):
                for i, copy in enumerate(copies):
                    if (copy.semaphore, copy.core, copy.end) == (semaphore, core, None):
                        copies[i] = replace(copy, end=at)
                        break
    return Record(tuple(copies), tuple(accesses), len(notes))


def _place(space: Any, buffer: Any, transforms: Any) -> Place:
    try:
        ranges = to_range(jax.tree.map(int, transforms))
    except (TypeError, AttributeError):  # an indexer that is no slice, or a reshaped ref
        ranges = ()
    starts = tuple(r if isinstance(r, int) else int(r.start) for r in ranges)
    name = simulator.TPU_MEMORY_SPACE_NAMES[int(space)]
    return Place("hbm" if name in HBM else name, int(buffer), starts)


@contextlib.contextmanager
def _notes(endless: list[str]) -> Iterator[list[Note]]:
    """Collect what the simulator is asked to do, while it does it; stop at an endless wait."""
    notes: list[Note] = []
    started: Counter[tuple[int, int]] = Counter()

    def on_start(token: Any, device: Any, core: Any, *rest: Any, **_: Any) -> None:
        space, buffer, transforms, space_to, buffer_to, transforms_to, semaphore = rest[:7]
        source = _place(space, buffer, transforms)
        target = _place(space_to, buffer_to, transforms_to)
        notes.append(Copy(source, target, int(semaphore), int(core), 0))
        started[int(semaphore), int(core)] += 1

    def on_wait(token: Any, device: Any, core: Any, semaphore: Any, *_: Any, **__: Any) -> None:
        notes.append((int(semaphore), int(core)))
        started[int(semaphore), int(core)] -= 1
        if started[int(semaphore), int(core)] < 0:
            endless.append(f"event {len(notes) - 1} waits for a copy that nobody has started")
            raise EndlessWaitError(endless[0])

    def on_access(
        writes: bool, token: Any, device: Any, core: Any, *rest: Any, **named: Any
    ) -> None:
        if "source_info" in named:  # else the simulator moves a block of a grid by itself
            notes.append(Access(_place(*rest[:3]), writes, int(core), 0))

    listeners: dict[str, Callable[..., None]] = {
        "dma_start": on_start,
        "dma_wait": on_wait,
        "get": functools.partial(on_access, False),
        "swap": functools.partial(on_access, True),
    }
    with contextlib.ExitStack() as stack:
        for name, listener in listeners.items():
            heard = _listening(getattr(simulator, name), listener)
            stack.enter_context(mock.patch.object(simulator, name, heard))
        yield notes


def _listening(original: Any, listener: Callable[..., None]) -> Any:
    """Return `original` with `listener` called first, on the same arguments."""

    @functools.wraps(original)
    def called(*args: Any, **named: Any) -> Any:
        listener(*args, **named)
        return original(*args, **named)

    called.__wrapped__ = original.__wrapped__  # the simulator itself calls what is inside
    return called
