"""The estimate of one program: its scalar half is executed, and the units' tables are weighed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

from pallas_rungs.ir.bundles import Listing, read_listing
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.scalar_program import ScalarProgram, read_program
from pallas_rungs.ir.utilization import Utilization, read_utilization
from pallas_rungs.performance.clock import Clock
from pallas_rungs.performance.dma import DmaEngine
from pallas_rungs.performance.interpreter import Translation
from pallas_rungs.performance.machine import (
    MOST_BLOCKS,
    VARIATIONS,
    Call,
    Machine,
    Variation,
    constant,
)

STALLED: Final = 0.25
"""Share of the cycles lost to DMAs from which they are what a kernel is bound by."""

HBM_BUSY: Final = 0.6
"""Share of HBM's rate from which it is the bytes, and not the latency, that is waited for."""

UNIT_BUSY: Final = 0.5
"""Share of a unit's capacity from which the unit is what a kernel is bound by."""

_NO_UNIT: Final = ("SALU", "VPOP", "MATPUSH")
"""Columns that bind nothing: the scalar unit's work, and queues that only hand results over."""

_PARTS: Final = ("VSTORE:SPILL", "VLOAD:FILL", "SPILL", "FILL")
"""Columns that are a part of another one."""

_OTHER_NAMES: Final = {"MATMUL": "MXU"}
"""What columns are called by other releases of libtpu, and what they are called here."""

_MOST_NAMES: Final = 12
_FEW_BLOCKS: Final = 200_000
"""Up to so many guesses and blocks, it is seen of each guess by itself whether it matters."""


class TooLongError(RuntimeError):
    """A program that was executed up to a limit without coming to its end: its time is not known.

    Attributes:
      name: the program.
      why: how far it was executed, in which loop, and what to do instead.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} {why}")
        self.name, self.why = name, why


@dataclass(frozen=True)
class Loop:
    """A loop of the program.

    Attributes:
      first: address of its first bundle.
      end: address after its last one.
      depth: how many loops it lies in.
      trips: how often its body was executed, over all entries.
      cycles: cycles spent in it, those of inner loops and stalls included.
    """

    first: int
    end: int
    depth: int
    trips: int
    cycles: float


@dataclass(frozen=True)
class KernelEstimate:
    """What one program of a module is estimated to take, each time that it is executed.

    Attributes:
      name: the HLO instruction.
      pallas: whether it is a Pallas kernel; else it is XLA's own code.
      times: how often the module executes it.
      cycles: issue and stalls, of the core that takes longest; so are the figures below that do not
        say that they are of all cores.
      issue_cycles: bundles issued.
      stall_cycles: cycles lost to waiting for DMAs and semaphores.
      steps: trips of the outermost loop with most cycles, 1 without a loop. A Pallas pipeline makes
        two more than its grid has steps, to fill and to drain.
      cycles_per_step: cycles of that loop for each trip.
      outside_cycles: cycles spent outside of that loop.
      bundles: bundles of the code.
      hbm_read_bytes: bytes that its DMAs read from HBM, those of all cores. Each core is followed
        by itself: v5p's second one has nothing to do where a grid has no parallel axis.
      hbm_written_bytes: bytes that its DMAs write to HBM, likewise.
      dmas: DMAs that it starts.
      vmem_bytes: VMEM that the compiler gave it; 0 where it tells none.
      spills: stores of vector registers for want of registers, executed.
      fills: loads of them again, executed.
      occupancy: of each unit, the part of its capacity that is used in those cycles; `HBM` is the
        part of its rate.
      bound: what it is bound by, in words.
      loops: all loops, outer ones first.
      unresolved: what had to be guessed and changes the estimate, and how often.
      given_up: why the program was not executed to its end; empty where it was.
    """

    name: str
    pallas: bool
    times: int
    cycles: float
    issue_cycles: int
    stall_cycles: float
    steps: int
    cycles_per_step: float
    outside_cycles: float
    bundles: int
    hbm_read_bytes: int
    hbm_written_bytes: int
    dmas: int
    vmem_bytes: int
    spills: int
    fills: int
    occupancy: dict[str, float]
    bound: str
    loops: tuple[Loop, ...]
    unresolved: dict[str, int] = field(default_factory=dict)
    given_up: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**vars(self), "loops": [vars(loop) for loop in self.loops]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build an estimate from what `to_json` gave."""
        return cls(**{**data, "loops": tuple(Loop(**loop) for loop in data["loops"])})


class KernelProgram:
    """A dumped program, ready to be executed.

    Args:
      name: the HLO instruction.
      listing: the text of `packed-bundles-post-ra`.
      clock: the chip's constants.
      utilization: the text of the utilisation table; empty where there is none.
      operands: words in SMEM of the operands whose values are known, by their index.

    Raises:
      IRError: the texts are not as their readers know them.
    """

    def __init__(
        self,
        name: str,
        listing: str,
        clock: Clock,
        utilization: str = "",
        operands: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.operands = dict(operands or {})
        self.listing: Listing = read_listing(listing, f"{name}, packed bundles")
        self.program: ScalarProgram = read_program(
            self.listing, f"{name}, packed bundles", int(clock.delay_slots.value)
        )
        self.translation = Translation(self.program)
        self.table: Utilization | None = None
        if utilization:
            self.table = read_utilization(utilization, f"{name}, utilization")
            if len(self.table.rows) != len(self.listing):
                raise IRError(
                    f"{name}, utilization",
                    f"a row for each of the {len(self.listing)} bundles",
                    f"{len(self.table.rows)} rows",
                )

    def with_clock(self, clock: Clock) -> KernelProgram:
        """Return the same program with other constants of the same chip; nothing is read again."""
        other = copy.copy(self)
        other.__dict__.pop("cores", None)
        other.clock = clock
        return other

    def machine(self, **options: Any) -> Machine:
        """Return a machine to execute the program on."""
        return Machine(self.clock, len(self.program.blocks), self.operands, **options)

    def executed(
        self,
        *,
        core: int = 0,
        start: float = 0.0,
        dma: DmaEngine | None = None,
        call: Call | None = None,
        guess: int = 0,
        varied: frozenset[str] = frozenset(),
        variation: Variation = VARIATIONS[0],
        most_blocks: int = MOST_BLOCKS,
    ) -> Machine:
        """Execute the program and return the machine that it ran on.

        Args:
          core: which of the chip's cores executes it.
          start: the cycle when it begins.
          dma: a DMA engine that is in use already.
          call: what calls of other programs do.
          guess: the value taken for what is not known.
          varied: names of guesses that take another value at each reading.
          variation: that value, by the number of the reading and the name.
          most_blocks: blocks that are executed before the run is given up.
        """
        machine = self.machine(
            core=core,
            dma=dma,
            call=call,
            guess=guess,
            varied=varied,
            variation=variation,
            time=start,
            most_blocks=most_blocks,
        )
        self.translation.run(machine)
        return machine

    @cached_property
    def cores(self) -> tuple[Machine, ...]:
        """The machines on which each core executed it, by itself; they are not to be changed."""
        count = int(self.clock.cores.value)
        if self.translation.asks_for_the_core:
            return tuple(self.executed(core=core) for core in range(count))
        return (self.executed(),) * count

    @property
    def alone(self) -> Machine:
        """That of the core that takes longest: the program ends with it."""
        return max(self.cores, key=lambda machine: machine.time)

    def guesses_that_matter(self, machine: Machine, **options: Any) -> dict[str, int]:
        """Return which guesses of a run change it, by taking other values for them.

        Args:
          machine: the run with the plain guesses.
          **options: of `executed`.
        """
        names = list(+machine.unresolved)
        if not names or machine.endless:
            return dict(+machine.unresolved)

        blocks = sum(machine.counts)

        ways = list(VARIATIONS)
        if blocks * len(self.translation.compared) <= _FEW_BLOCKS:
            ways += [constant(value) for value in self.translation.compared]

        def matters(*varied: str) -> bool:
            return any(
                not _same(
                    machine,
                    self.executed(
                        core=machine.core,
                        varied=frozenset(varied),
                        variation=variation,
                        most_blocks=blocks + 1,  # one more, and it took another course
                        **options,
                    ),
                )
                for variation in ways
            )

        if not matters(*names):
            return {}
        found = names
        if 1 < len(names) <= _MOST_NAMES and blocks <= _FEW_BLOCKS:
            found = [name for name in names if matters(name)]
        return {name: machine.unresolved[name] for name in found or names}

    def estimate(
        self, *, pallas: bool = False, times: int = 1, vmem_bytes: int = 0
    ) -> KernelEstimate:
        """Execute the program by itself and say what it takes.

        Args:
          pallas: whether it is a Pallas kernel.
          times: how often the module executes it.
          vmem_bytes: VMEM that the compiler gave it.

        Raises:
          TooLongError: it does not end where its execution is given up, and no guess is why.
        """
        cores, machine = self.cores, self.alone
        for core in cores:
            if core.endless and not self._ends_by_guesses(core):
                raise TooLongError(self.name, self.how_far(core))
        unresolved: dict[str, int] = {}
        for core in {id(core): core for core in cores}.values():
            for what, count in self.guesses_that_matter(core).items():
                unresolved[what] = max(count, unresolved.get(what, 0))
        for opcode in self.program.unknown:
            unresolved[f"the instruction {opcode}"] = 1
        given_up = ""
        if any(core.endless for core in cores):
            given_up = "its end hangs on values that are not known: every bundle is counted once"
            machine = self.machine()
            machine.counts = [1] * len(self.program.blocks)
            machine.time = float(self.program.bundles)
            cores = (machine,) * len(cores)
        loops, occupancy = self._loops(machine), self._occupancy(machine)
        outer = [loop for loop in loops if loop.depth == 0 and loop.trips]
        main = max(outer, key=lambda loop: loop.cycles) if outer else None
        return KernelEstimate(
            name=self.name,
            pallas=pallas,
            times=times,
            cycles=machine.time,
            issue_cycles=self._issued(machine, 0, len(self.program.blocks)),
            stall_cycles=machine.stalled,
            steps=main.trips if main else 1,
            cycles_per_step=main.cycles / main.trips if main else machine.time,
            outside_cycles=machine.time - (main.cycles if main else 0.0),
            bundles=self.program.bundles,
            hbm_read_bytes=sum(core.engine.read_bytes for core in cores),
            hbm_written_bytes=sum(core.engine.written_bytes for core in cores),
            dmas=machine.engine.started,
            vmem_bytes=vmem_bytes,
            spills=self._executed_of(machine, "spills"),
            fills=self._executed_of(machine, "fills"),
            occupancy=occupancy,
            bound=_bound(occupancy, machine.stalled / machine.time if machine.time else 0.0),
            loops=loops,
            unresolved=unresolved,
            given_up=given_up,
        )

    def _ends_by_guesses(self, machine: Machine) -> bool:
        """Whether a run that was given up comes to its end with other values for its guesses."""
        names = frozenset(+machine.unresolved)
        if self.program.unknown:
            return True
        ways = [(variation, MOST_BLOCKS) for variation in VARIATIONS]
        ways += [(constant(value), _FEW_BLOCKS) for value in self.translation.compared]
        return bool(names) and any(
            not self.executed(
                core=machine.core, varied=names, variation=variation, most_blocks=most
            ).endless
            for variation, most in ways
        )

    def how_far(self, machine: Machine) -> str:
        """Say how far a run went that was given up, and what to do: the end of a sentence.

        Args:
          machine: the run.
        """
        blocks = sum(machine.counts)
        place, most = max(enumerate(machine.counts), key=lambda each: each[1])
        around = [loop for loop in self.program.loops() if loop[0] <= place < loop[1]]
        where = ""
        if around:
            first, end = min(around, key=lambda loop: loop[1] - loop[0])
            start, stop = self.program.blocks[first].first, self.program.blocks[end - 1].end
            where = f", {most:,} of them in its loop at bundles {start:#x} to {stop - 1:#x}"
        return (
            f"was executed for {blocks:,} blocks{where}, and had not come to its end, so that its "
            "time is not known: estimate it with two smaller numbers of rounds, and extrapolate "
            "from what the rounds between them take"
        )

    def _issued(self, machine: Machine, first: int, end: int) -> int:
        """Bundles issued in blocks `first` to before `end`."""
        blocks = self.program.blocks[first:end]
        return sum(
            count * len(block)
            for count, block in zip(machine.counts[first:end], blocks, strict=True)
        )

    def _loops(self, machine: Machine) -> tuple[Loop, ...]:
        spans = self.program.loops()
        found = []
        for first, end in spans:
            start, stop = self.program.blocks[first].first, self.program.blocks[end - 1].end
            stalled = sum(cycles for at, cycles in machine.stalls.items() if start <= at < stop)
            depth = sum(a <= first and end <= b and (a, b) != (first, end) for a, b in spans)
            cycles = self._issued(machine, first, end) + stalled
            found.append(Loop(start, stop, depth, machine.counts[first], cycles))
        return tuple(sorted(found, key=lambda loop: (loop.depth, -loop.cycles, loop.first)))

    def _executed_of(self, machine: Machine, kind: str) -> int:
        """How many instructions of a kind, "spills" or "fills", were executed."""
        return sum(
            count * getattr(self.listing.between(block.first, block.end), kind)
            for block, count in zip(self.program.blocks, machine.counts, strict=True)
            if count
        )

    def _occupancy(self, machine: Machine) -> dict[str, float]:
        """Return which part of each unit's capacity was used."""
        if not machine.time:
            return {}
        moved = machine.engine.read_bytes + machine.engine.written_bytes
        occupancy = {"HBM": moved / (self.clock.hbm_bytes_per_cycle * machine.time)}
        if self.table is None:
            return occupancy
        busy = [0] * len(self.table.capacity)
        for block, count in zip(self.program.blocks, machine.counts, strict=True):
            if count:
                columns = zip(*self.table.rows[block.first : block.end], strict=True)
                for place, column in enumerate(columns):
                    busy[place] += count * sum(column)
        for (unit, capacity), used in zip(self.table.capacity.items(), busy, strict=True):
            if capacity and unit not in _PARTS:
                occupancy[_OTHER_NAMES.get(unit, unit)] = used / (capacity * machine.time)
        return occupancy


def _same(one: Machine, other: Machine) -> bool:
    """Whether two runs took the same blocks, bytes and cycles."""
    return (
        one.counts == other.counts
        and one.time == other.time
        and one.engine.read_bytes == other.engine.read_bytes
        and one.engine.written_bytes == other.engine.written_bytes
        and one.called == other.called
    )


def _bound(occupancy: dict[str, float], stalled: float) -> str:
    """Say what a kernel is bound by."""
    units = {unit: share for unit, share in occupancy.items() if unit not in _NO_UNIT}
    if not units:
        return "nothing: it takes no cycle"
    busiest = max(units, key=lambda unit: units[unit])
    if stalled > STALLED:
        if units["HBM"] > HBM_BUSY:
            return f"HBM ({units['HBM']:.0%} of its rate)"
        return f"waiting for DMAs ({stalled:.0%} of the cycles; HBM at {units['HBM']:.0%})"
    if list(units) == ["HBM"]:
        return "unknown: there is no table of the units"
    if units[busiest] >= UNIT_BUSY:
        of = "rate" if busiest == "HBM" else "capacity"
        return f"{busiest} ({units[busiest]:.0%} of its {of})"
    return f"the schedule: dependences and latencies (busiest: {busiest}, {units[busiest]:.0%})"
