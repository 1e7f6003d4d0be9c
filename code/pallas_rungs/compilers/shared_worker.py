"""One worker for this process, and what comes of asking it to compile a program."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from pallas_rungs.compilers.outcome import CompilerOutcome, of_died, of_timed_out
from pallas_rungs.compilers.process import Reply, TimedOut, Worker, WorkerStartError
from pallas_rungs.compilers.service import ServiceWorker


class SharedWorker:
    """A worker that all of this process shares, made anew when what it follows has changed.

    Args:
      make: makes the worker; it is not to start it.
      follows: names of variables of this process's environment that the compiler reads once.
    """

    def __init__(
        self, make: Callable[[], Worker | ServiceWorker], *, follows: tuple[str, ...] = ()
    ) -> None:
        self._make = make
        self._follows = follows
        self._seen: tuple[str | None, ...] = ()
        self._worker: Worker | ServiceWorker | None = None
        self._lock = threading.Lock()

    def get(self) -> Worker | ServiceWorker:
        """The worker, not started if it is new."""
        flags = tuple(map(os.environ.get, self._follows))
        with self._lock:
            if self._worker is None or flags != self._seen:
                if self._worker is not None:
                    self._worker.close()
                self._worker = self._make()
                self._seen = flags
            return self._worker

    def start(self) -> None:
        """Start the worker without waiting for it; a failure is told when a program comes."""
        with contextlib.suppress(WorkerStartError):
            self.get().start()

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


def ask(
    worker: Worker | ServiceWorker,
    request: dict[str, Any],
    program: bytes,
    time_limit: float,
    versions: dict[str, str],
) -> Reply | CompilerOutcome:
    """Ask for a program to be compiled.

    Args:
      worker: a compiler's worker.
      request: the header of the request.
      program: the exported program.
      time_limit: seconds, the worker's start-up not counted.
      versions: for an outcome that the worker did not come to tell.

    Returns:
      The worker's answer, or the outcome where it gave none.
    """
    start = time.monotonic()
    try:
        answer = worker.request(request, program, time_limit=time_limit)
    except WorkerStartError as error:
        return CompilerOutcome(
            "unavailable",
            type(error).__name__,
            str(error),
            seconds=time.monotonic() - start,
            versions=versions,
        )
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, TimedOut):
        return of_timed_out(answer, versions)
    return of_died(answer, versions)
