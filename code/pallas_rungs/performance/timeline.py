"""What happened when, in the run of one kernel: its transfers, and where the core waited for them.

The estimator itself keeps only sums; a run that is watched takes the same course and also keeps
the single events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pallas_rungs.performance.dma import HBM, DmaEngine
from pallas_rungs.performance.kernel import KernelProgram
from pallas_rungs.performance.machine import Machine


@dataclass(frozen=True)
class Transfer:
    """One transfer; its times are cycles of the core.

    Attributes:
      source: the memory that it reads, "hbm", "vmem", …
      target: the memory that it writes.
      flag: address of the semaphore that it raises.
      size: bytes.
      started: when the core starts it.
      begins: when the HBM queue comes to it; `started` for one that does not touch HBM.
      ends: when its last byte is through the queue.
      done: when its semaphore is raised.
    """

    source: str
    target: str
    flag: int
    size: int
    started: float
    begins: float
    ends: float
    done: float


@dataclass(frozen=True)
class Wait:
    """A wait that cost cycles.

    Attributes:
      bundle: address of the bundle that waits.
      flag: address of the semaphore.
      begins: when the core comes to it.
      ends: when the core goes on.
    """

    bundle: int
    flag: int
    begins: float
    ends: float


@dataclass
class Timeline(Machine):
    """A machine that keeps what its DMAs do.

    Attributes:
      transfers: in the order in which they were started.
      waits: those that cost cycles, in their order.
    """

    transfers: list[Transfer] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)

    def start(
        self, now: float, spaces: tuple[str, str], granules: int, places: tuple[int, int], flag: int
    ) -> None:
        """Start a DMA, and note it."""
        through = HBM in spaces
        begins = max(now, self.engine.free_at) if through else now
        before = Counter(self.semaphores.raising[flag])
        super().start(now, spaces, granules, places, flag)
        ((done, _),) = Counter(self.semaphores.raising[flag]) - before
        size = granules * int(self.clock.granule.value)
        ends = self.engine.free_at if through else done
        self.transfers.append(Transfer(*spaces, flag, size, now, begins, ends, done))

    def wait(self, now: float, flag: int, at_least: int, bundle: int) -> float:
        """Wait for a semaphore, and note it where it costs cycles."""
        end = super().wait(now, flag, at_least, bundle)
        if end > now:
            self.waits.append(Wait(bundle, flag, now, end))
        return end

    def to_json(self) -> dict[str, Any]:
        """Return the events as plain JSON data, cycles rounded to whole ones."""
        return {
            name: [
                {
                    key: round(value) if isinstance(value, float) else value
                    for key, value in vars(event).items()
                }
                for event in events
            ]
            for name, events in (("transfers", self.transfers), ("waits", self.waits))
        }


def timeline(program: KernelProgram) -> Timeline:
    """Execute a kernel's program by itself, and keep its transfers and waits.

    Returns:
      The machine that it ran on; time, counts and stalls are those of `KernelProgram.alone`, the
      core that takes longest.
    """
    machine = Timeline(
        program.clock,
        len(program.program.blocks),
        program.operands,
        dma=DmaEngine(program.clock),
        core=program.alone.core if program.translation.asks_for_the_core else 0,
    )
    program.translation.run(machine)
    return machine
