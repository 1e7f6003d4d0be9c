"""Seeing that a simulated kernel waits for something that never comes, and ending the wait.

The simulator's semaphores block a thread for each device. When nobody is left to signal, it would
wait forever, and a notebook with it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from pallas_rungs.ladder.source_frames import frame_in_text
from pallas_rungs.ladder.verdict import Frame

_LOOK_EVERY = 0.2
_CERTAIN_AFTER = 0.5
_LIKELY_AFTER = 5.0
_IDLE = 0.1


@dataclass(frozen=True)
class Wait:
    """One device waits for a semaphore.

    Attributes:
      device: the device's number.
      value: what the semaphore must reach.
      count: what it stood at.
      at: the wait, as `file:line:column (function)`; empty when the simulator does not know.
    """

    device: int
    value: int
    count: int
    at: str = ""

    @property
    def frame(self) -> Frame | None:
        """The line of the kernel that waits."""
        return frame_in_text(f"at {self.at}") if self.at else None

    def __str__(self) -> str:
        return f"device {self.device} waits for {self.value}, the semaphore is at {self.count}"


@dataclass
class Standstill:
    """What was found: empty while the kernel moves.

    Attributes:
      waits: the waits that nothing will satisfy, by device.
    """

    waits: tuple[Wait, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.waits)

    def __str__(self) -> str:
        first, *others = self.waits
        others_too = f", and {len(others)} more wait like it" if others else ""
        return f"{first}, and nobody is left to signal it{others_too}"


@dataclass
class _Blocked:
    """A thread inside `Semaphore.wait`."""

    semaphore: Any
    value: int
    core: int
    source: Any

    def hopeless(self) -> bool:
        """True when the count is too small and no copy is pending that would raise it."""
        with self.semaphore.cv:
            return self._count() < self.value and not self.semaphore.tasks[self.core]

    def _count(self) -> int:
        return int(self.semaphore.count_by_core[self.core])

    def told(self) -> Wait:
        from jax._src import source_info_util

        at = source_info_util.summarize(self.source) if self.source is not None else ""
        cores = self.semaphore.shared_memory.num_cores_per_device
        return Wait(self.core // cores, self.value, self._count(), at)


@dataclass
class _Watch:
    found: Standstill = field(default_factory=Standstill)
    blocked: dict[int, _Blocked] = field(default_factory=dict)
    copies: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    def noting(self, wait: Callable[..., None]) -> Callable[..., None]:
        """Return the semaphore's `wait`, noting who is in it."""

        def noted(semaphore: Any, value: Any, core: Any, **options: Any) -> None:
            source = getattr(options.get("logging_info"), "source_info", None)
            blocked = _Blocked(semaphore, int(value), int(core), source)
            with self.lock:
                self.blocked[threading.get_ident()] = blocked
            try:
                wait(semaphore, value, core, **options)
            finally:
                with self.lock:
                    self.blocked.pop(threading.get_ident(), None)

        return noted

    def counting(self, enqueue: Callable[..., None]) -> Callable[..., None]:
        """Return the semaphore's `enqueue_task`, counting the copies that are being made."""

        def counted(semaphore: Any, task: Callable[[], None], core: Any) -> None:
            def run() -> None:
                with self.lock:
                    self.copies += 1
                try:
                    task()
                finally:
                    with self.lock:
                        self.copies -= 1

            enqueue(semaphore, run, core)

        return counted

    def look(self) -> None:
        """Look again and again until the run is over; end it when it stands still."""
        seen: tuple[Any, ...] = ()
        began = spent = 0.0
        while not self.over.wait(_LOOK_EVERY):
            with self.lock:
                waiting = list(self.blocked.values())
                copying = self.copies
            memory = _shared_memory()
            moving = memory is None or memory._failure is not None or not waiting or copying
            if moving or not all(w.hopeless() for w in waiting):
                seen = ()
                continue
            at_barriers = memory.barrier.n_waiting + memory.clean_up_barrier.n_waiting
            now = (*map(id, waiting), at_barriers)
            if now != seen:
                seen, began, spent = now, time.monotonic(), time.process_time()
                continue
            stood = time.monotonic() - began
            everyone = len(waiting) + at_barriers >= memory.num_devices
            certain = everyone and memory.num_cores_per_device == 1 and stood >= _CERTAIN_AFTER
            idle = time.process_time() - spent < _IDLE * stood
            if certain or (idle and stood >= _LIKELY_AFTER):
                waits = sorted((w.told() for w in waiting), key=lambda w: w.device)
                self.found.waits = tuple(waits)
                memory.set_failed(RuntimeError(str(self.found)), top_level=False)
                return


def _shared_memory() -> Any:
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call

    return interpret_pallas_call._shared_memory


@contextlib.contextmanager
def ended_at_a_standstill() -> Iterator[Standstill]:
    """End a simulated kernel that waits for what never comes, by an error in all its devices.

    Certain where every device waits and no copy is pending that would signal. Where cores share a
    device, or a device never got a thread to start in: after five seconds without work.
    """
    from jax._src.pallas.mosaic.interpret.shared_memory import Semaphore

    watch = _Watch()
    looking = threading.Thread(target=watch.look, name="standstill", daemon=True)
    with (
        mock.patch.object(Semaphore, "wait", watch.noting(Semaphore.wait)),
        mock.patch.object(Semaphore, "enqueue_task", watch.counting(Semaphore.enqueue_task)),
    ):
        looking.start()
        try:
            yield watch.found
        finally:
            watch.over.set()
            looking.join()
