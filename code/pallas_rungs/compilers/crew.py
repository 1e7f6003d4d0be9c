"""A crew: several hands that take tasks from one list, each in a thread of its own.

A hand is what does a task, most often a worker process. What comes of the tasks is handed back in
the thread that gave them, in the order in which they end.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Protocol

_PATIENCE: Final = 10.0
"""Seconds that hands have to let go of what they do after they were told to."""


class Hand(Protocol):
    """What does the tasks."""

    def interrupt(self) -> None:
        """Let go of what it does, from another thread than the one that waits for it."""

    def close(self) -> None:
        """End; from the thread that used it."""


def cores() -> int:
    """How many cores this process may use."""
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Crew[H: Hand, T, R]:
    """Several hands that take tasks from one list. A context manager.

    Left by an error, by Ctrl-C above all, it interrupts its hands and ends them; left as usual, it
    ends them. A hand is made when there is work for it.

    Args:
      hire: makes a hand.
      do: does a task with a hand and returns what came of it. What it raises is raised again by
        `done`, and ends the crew.
      hands: how many, at least one.
    """

    def __init__(
        self, hire: Callable[[], H], do: Callable[[H, T], R], hands: int | None = None
    ) -> None:
        self._hire = hire
        self._do = do
        self._most = max(1, hands or cores())
        self._tasks: queue.SimpleQueue[tuple[int, T] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = (
            queue.SimpleQueue()
        )
        self._open = 0
        self._stopped = threading.Event()
        self._hands: list[H] = []
        self._threads: list[threading.Thread] = []

    def give(self, place: int, task: T) -> None:
        """Give a task, whose outcome comes under this number."""
        self._tasks.put((place, task))
        self._open += 1
        if len(self._threads) < min(self._most, self._open):
            thread = threading.Thread(target=self._work, name="crew", daemon=True)
            self._threads.append(thread)
            thread.start()

    def done(self, *, wait: bool) -> Iterator[tuple[int, R]]:
        """Yield number and outcome of the tasks that ended since it was asked last.

        Args:
          wait: until all are done that were given.

        Raises:
          BaseException: what a task raised.
        """
        while self._open:
            try:
                place, outcome, error = self._ended.get(block=wait)
            except queue.Empty:
                return
            self._open -= 1
            if error is not None:
                raise error
            yield place, outcome  # type: ignore[misc]

    def __enter__(self) -> Crew[H, T, R]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        for _ in self._threads:
            self._tasks.put(None)
        give_up = time.monotonic() + _PATIENCE
        while any(thread.is_alive() for thread in self._threads):
            if error is not None:
                for hand in list(self._hands):
                    hand.interrupt()
            for thread in self._threads:
                thread.join(0.1)
            if error is not None and time.monotonic() > give_up:
                return  # what is left dies with this process

    def _work(self) -> None:
        hand: H | None = None
        try:
            while (task := self._tasks.get()) is not None:
                if self._stopped.is_set():
                    return
                place, what = task
                try:
                    if hand is None:
                        hand = self._hire()
                        self._hands.append(hand)
                    self._ended.put((place, self._do(hand, what), None))
                except BaseException as error:
                    self._ended.put((place, None, error))
        finally:
            if hand is not None:
                hand.close()
