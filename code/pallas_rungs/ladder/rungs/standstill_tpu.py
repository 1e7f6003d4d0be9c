"""A TPU kernel in the simulator that waits for a semaphore which nobody will signal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from pallas_rungs.ladder.rungs.standstill import Blocked, Standstill, Wait, Watch


@dataclass
class _AtSemaphore(Blocked):
    """A thread inside `Semaphore.wait`."""

    semaphore: Any
    value: int
    core: int
    source: Any

    def hopeless(self) -> bool:
        """True when the count is too small and no copy is pending that would raise it."""
        with self.semaphore.cv:
            return self._count() < self.value and not self.semaphore.tasks[self.core]

    def order(self) -> tuple[int, ...]:
        """By device."""
        return (self._device(),)

    def told(self) -> Wait:
        """Which device waits, for how much, and what the semaphore is at."""
        from jax._src import source_info_util

        at = source_info_util.summarize(self.source) if self.source is not None else ""
        what = f"{self.value}, the semaphore is at {self._count()}"
        return Wait(f"device {self._device()}", what, at)

    def _count(self) -> int:
        return int(self.semaphore.count_by_core[self.core])

    def _device(self) -> int:
        return self.core // int(self.semaphore.shared_memory.num_cores_per_device)


@dataclass
class _Watch(Watch):
    copies: int = 0

    def memory(self) -> Any:
        """The simulator's shared memory."""
        from jax._src.pallas.mosaic.interpret import interpret_pallas_call

        return interpret_pallas_call._shared_memory

    def moving(self, memory: Any) -> bool:
        """True while a copy is being made."""
        with self.lock:
            return bool(self.copies)

    def at_the_end(self, memory: Any) -> int:
        """How many devices stand at the barriers around a kernel."""
        return int(memory.barrier.n_waiting + memory.clean_up_barrier.n_waiting)

    def threads(self, memory: Any) -> int | None:
        """One for each device, where cores share none."""
        return int(memory.num_devices) if memory.num_cores_per_device == 1 else None

    def end(self, memory: Any, waiting: list[Blocked]) -> None:
        """Fail the run, which wakes all devices."""
        memory.set_failed(RuntimeError(str(self.found)), top_level=False)

    def noting(self, wait: Callable[..., None]) -> Callable[..., None]:
        """Return the semaphore's `wait`, noting who is in it."""

        def noted(semaphore: Any, value: Any, core: Any, **options: Any) -> None:
            source = getattr(options.get("logging_info"), "source_info", None)
            with self.noted(_AtSemaphore(semaphore, int(value), int(core), source)):
                wait(semaphore, value, core, **options)

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


@contextlib.contextmanager
def ended_at_a_standstill() -> Iterator[Standstill]:
    """End a simulated kernel that waits for what never comes, by an error in all its devices.

    Certain where every device waits and no copy is pending that would signal. Where cores share a
    device, or a device never got a thread to start in: after five seconds without work.
    """
    from jax._src.pallas.mosaic.interpret.shared_memory import Semaphore

    watch = _Watch()
    with (
        mock.patch.object(Semaphore, "wait", watch.noting(Semaphore.wait)),
        mock.patch.object(Semaphore, "enqueue_task", watch.counting(Semaphore.enqueue_task)),
        watch.watching() as found,
    ):
        yield found
