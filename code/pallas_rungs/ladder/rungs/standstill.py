"""Seeing that a simulated kernel waits for something that never comes, and ending the wait.

The simulators' semaphores and barriers block a thread of this process for each thread of the
kernel. When nobody is left to signal, they would wait forever, and a notebook with them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pallas_rungs.ladder.source_frames import frame_in_text
from pallas_rungs.ladder.verdict import Frame

_LOOK_EVERY = 0.2
_CERTAIN_AFTER = 0.5
_LIKELY_AFTER = 5.0
_IDLE = 0.1


@dataclass(frozen=True)
class Wait:
    """Somebody waits for something.

    Attributes:
      who: the device or thread that waits.
      what: what it waits for, and how far that is.
      at: the wait, as `file:line:column (function)`; empty when the simulator does not know.
    """

    who: str
    what: str
    at: str = ""

    @property
    def frame(self) -> Frame | None:
        """The line of the kernel that waits."""
        return frame_in_text(f"at {self.at}") if self.at else None

    def __str__(self) -> str:
        return f"{self.who} waits for {self.what}"


@dataclass
class Standstill:
    """What was found: empty while the kernel moves.

    Attributes:
      waits: the waits that nothing will satisfy, in the order of who waits.
    """

    waits: tuple[Wait, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.waits)

    def __str__(self) -> str:
        first, *others = self.waits
        others_too = f", and {len(others)} more wait like it" if others else ""
        return f"{first}, and nobody is left to signal it{others_too}"


class Blocked(ABC):
    """A thread inside a wait."""

    @abstractmethod
    def hopeless(self) -> bool:
        """True when what it waits for is not there and nothing is pending that would bring it."""

    @abstractmethod
    def order(self) -> tuple[int, ...]:
        """Where it stands among those that wait."""

    @abstractmethod
    def told(self) -> Wait:
        """What is told of it."""


@dataclass
class Watch(ABC):
    """Looks at a simulator while a kernel runs in it."""

    found: Standstill = field(default_factory=Standstill)
    blocked: dict[int, Blocked] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    @abstractmethod
    def memory(self) -> Any:
        """The simulator's shared memory, None while no kernel runs."""

    @abstractmethod
    def moving(self, memory: Any) -> bool:
        """True while something is under way that is no wait."""

    @abstractmethod
    def at_the_end(self, memory: Any) -> int:
        """How many threads wait only for the others to come to their end."""

    @abstractmethod
    def threads(self, memory: Any) -> int | None:
        """How many threads there are; None where that is not known for certain."""

    @abstractmethod
    def end(self, memory: Any, waiting: list[Blocked]) -> None:
        """Make every wait raise."""

    @contextlib.contextmanager
    def noted(self, blocked: Blocked) -> Iterator[None]:
        """Note that this thread waits, for the duration of the block."""
        with self.lock:
            self.blocked[threading.get_ident()] = blocked
        try:
            yield
        finally:
            with self.lock:
                self.blocked.pop(threading.get_ident(), None)

    def look(self) -> None:
        """Look again and again until the run is over; end it when it stands still."""
        seen: tuple[Any, ...] = ()
        began = spent = 0.0
        while not self.over.wait(_LOOK_EVERY):
            with self.lock:
                waiting = list(self.blocked.values())
            memory = self.memory()
            if memory is None or memory._failure is not None or not waiting or self.moving(memory):
                seen = ()
                continue
            if not all(w.hopeless() for w in waiting):
                seen = ()
                continue
            at_the_end = self.at_the_end(memory)
            now = (*map(id, waiting), at_the_end)
            if now != seen:
                seen, began, spent = now, time.monotonic(), time.process_time()
                continue
            stood = time.monotonic() - began
            threads = self.threads(memory)
            everyone = threads is not None and len(waiting) + at_the_end >= threads
            certain = everyone and stood >= _CERTAIN_AFTER
            idle = time.process_time() - spent < _IDLE * stood
            if certain or (idle and stood >= _LIKELY_AFTER):
                in_order = sorted(waiting, key=lambda w: w.order())
                self.found.waits = tuple(w.told() for w in in_order)
                self.end(memory, waiting)
                return

    @contextlib.contextmanager
    def watching(self) -> Iterator[Standstill]:
        """Look for the duration of the block."""
        looking = threading.Thread(target=self.look, name="standstill", daemon=True)
        looking.start()
        try:
            yield self.found
        finally:
            self.over.set()
            looking.join()
