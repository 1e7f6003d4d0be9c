"""The DMA engine: one queue through HBM, semaphores that count granules, and who waits for them.

All transfers to and from HBM go one after the other, each at the full rate; a transfer's bytes
land a latency later, and then its semaphore is raised by its granules. So transfers share the
bandwidth, which the simulator inside libtpu does not let them do. Strides, turns between reading
and writing, and contention for the ports of VMEM are not modelled.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from pallas_rungs.performance.clock import Clock

HBM: Final = "hbm"
MEMORIES: Final = frozenset({HBM, "vmem", "smem", "cmem", "imem", "sflag", "host_iova"})
"""Memories that a transfer may have at its ends; all but HBM are the core's own or the host's."""


@dataclass
class DmaEngine:
    """The transfers of one core.

    Attributes:
      clock: the chip's constants.
      free_at: the cycle when the HBM queue is empty.
      read_bytes: bytes read from HBM so far.
      written_bytes: bytes written to HBM so far.
      started: transfers started so far.
    """

    clock: Clock
    free_at: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    started: int = 0

    def start(self, now: float, source: str, target: str, granules: int) -> float:
        """Start a transfer.

        Args:
          now: the cycle.
          source: memory space that it reads, "hbm", "vmem", "smem", …
          target: memory space that it writes.
          granules: its size.

        Returns:
          The cycle when it is done.
        """
        size = granules * int(self.clock.granule.value)
        self.started += 1
        passes = (source == HBM) + (target == HBM)
        rate = self.clock.hbm_bytes_per_cycle
        if not passes:
            return now + self.clock.on_chip_latency.value + size / (4 * rate)
        self.free_at = max(now, self.free_at) + passes * size / rate
        self.read_bytes += size * (source == HBM)
        self.written_bytes += size * (target == HBM)
        latency = self.clock.read_latency if source == HBM else self.clock.write_latency
        return self.free_at + latency.value


@dataclass
class Semaphores:
    """Counters that transfers and the core raise, by address.

    Attributes:
      values: what each of them counts now, without the transfers that nobody has waited for.
      raising: transfers under way, as (cycle when done, granules), the earliest first.
    """

    values: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    raising: defaultdict[int, list[tuple[float, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def will_rise(self, semaphore: int, done: float, granules: int) -> None:
        """Note that a transfer will raise a semaphore when it is done."""
        heapq.heappush(self.raising[semaphore], (done, granules))

    def add(self, semaphore: int, amount: int) -> None:
        """Raise a semaphore now, or lower it."""
        self.values[semaphore] += amount

    def set(self, semaphore: int, value: int) -> None:
        """Set a semaphore now."""
        self.values[semaphore] = value

    def count(self, now: float, semaphore: int) -> int:
        """Return what a semaphore counts at a cycle."""
        under_way = self.raising[semaphore]
        while under_way and under_way[0][0] <= now:
            self.values[semaphore] += heapq.heappop(under_way)[1]
        return self.values[semaphore]

    def reached(self, now: float, semaphore: int, at_least: int) -> tuple[float, bool]:
        """Say when a semaphore counts so much.

        Args:
          now: the cycle.
          semaphore: its address.
          at_least: the value to wait for.

        Returns:
          The cycle, not before `now`; and False where no transfer under way takes it there.
        """
        under_way = self.raising[semaphore]
        while self.values[semaphore] < at_least and under_way:
            done, granules = heapq.heappop(under_way)
            self.values[semaphore] += granules
            now = max(now, done)
        return now, self.values[semaphore] >= at_least
