"""The estimate of a whole module: its programs, and the top-level program that calls them.

The top-level program starts asynchronous copies and runs loops, so it is executed as well, with the
kernels run where it calls them on the same DMA engine. Where its course hangs on values that are
not known, the programs' times are added up instead, as often as the HLO says that they run, and so
are the bytes of its copies.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.launches import Launch, Launches, read_launches
from pallas_rungs.performance.clock import Clock
from pallas_rungs.performance.kernel import KernelEstimate, KernelProgram, TooLongError
from pallas_rungs.performance.machine import (
    BROUGHT,
    MOST_BLOCKS,
    OPERAND_VALUES,
    VARIATIONS,
    Machine,
)
from pallas_rungs.performance.operands import KernelOperands

TOP_LEVEL: Final = "TLP"
_NOT_CALLED: Final = ("<late-initialization>", "<late-finalization>")
_RUN_TIME_CELLS: Final = 1
"""What the top-level program finds in memory that the run time wrote: that it is to run."""

_MOST_NAMED: Final = 3

_ASK: Final = " (give the argument that they come from as a concrete array)"
_UNREAD: Final = " (they are given, but how {} lies in SMEM is not known here)"

_BLOCKS_AT_FIRST: Final = 20_000
"""Blocks of the top-level program after which it is seen whether a guess keeps it from its end."""

_NUMBER: Final = re.compile(r"\.\d+$")
_OPERAND: Final = re.compile(rf"{OPERAND_VALUES} (\d+)")
_TRIPS: Final = re.compile("trips of the loop")
_BUNDLE: Final = re.compile(r"bundle 0x([0-9a-f]+)")


@dataclass(frozen=True)
class ModuleEstimate:
    """What a module is estimated to take.

    Attributes:
      cycles: cycles of one run.
      hbm_read_bytes: bytes read from HBM, those of asynchronous copies at top level included.
      hbm_written_bytes: bytes written to HBM.
      prefetched_bytes: bytes of its arguments that are brought from HBM onto the chip before it
        starts; 0 for none. Neither they nor their time are in the other figures.
      kernels: its programs, Pallas kernels and XLA's own code alike, in the order of the HLO.
      top_level: whether the top-level program was executed; else the programs' times are added.
      unresolved: what had to be guessed, by name, in words.
    """

    cycles: float
    hbm_read_bytes: int
    hbm_written_bytes: int
    prefetched_bytes: int
    kernels: tuple[KernelEstimate, ...]
    top_level: bool
    unresolved: tuple[str, ...]


def estimate_module(
    listings: Mapping[str, str],
    tables: Mapping[str, str],
    hlo: str,
    clock: Clock,
    operands: tuple[KernelOperands, ...] = (),
) -> ModuleEstimate:
    """Estimate a module from what libtpu dumped of it.

    Args:
      listings: `packed-bundles-post-ra` by program, the top-level program's under `TLP`.
      tables: the utilisation tables by program.
      hlo: the optimised HLO.
      clock: the chip's constants.
      operands: what is known of the kernels' tables and scalars, in the order of the trace.

    Raises:
      IRError: a text is not as its reader knows it.
      TooLongError: the end of a program is not reached.
    """
    return Module(listings, tables, hlo, clock, operands).estimate()


class Module:
    """A dumped module, ready to be executed; its arguments are those of `estimate_module`."""

    def __init__(
        self,
        listings: Mapping[str, str],
        tables: Mapping[str, str],
        hlo: str,
        clock: Clock,
        operands: tuple[KernelOperands, ...] = (),
    ) -> None:
        self.clock = clock
        self.listings = {_as_file(name): text for name, text in listings.items()}
        self.tables = {_as_file(name): text for name, text in tables.items()}
        self.launches: Launches = read_launches(hlo)
        self.unresolved: list[str] = []
        self.given = self._matched(operands)
        self.sources = self._sources()
        self.programs: dict[str, KernelProgram] = {}

    def cycles(self, found: ModuleEstimate, clock: Clock) -> float:
        """Return the cycles of one run with other constants of the same chip.

        Nothing is read again, and nothing is judged again: what was guessed stays guessed, and the
        top-level program is executed where it was.

        Args:
          found: the module's estimate.
          clock: the other constants.
        """
        again = copy.copy(self)
        again.clock = clock
        again.programs = {name: it.with_clock(clock) for name, it in self.programs.items()}
        kernels = {kernel.name: kernel for kernel in found.kernels}
        if found.top_level:
            tops = again._top_level_runs(again.programs[TOP_LEVEL], kernels, {})
            return max(top.time for top in tops)
        return sum(
            kernel.times * (kernel.cycles if kernel.given_up else again.programs[name].alone.time)
            for name, kernel in kernels.items()
        )

    def estimate(self) -> ModuleEstimate:
        """Execute the module and say what it takes.

        Raises:
          IRError: a text is not as its reader knows it.
          TooLongError: the end of a program is not reached.
        """
        launched = [launch for launch in self.launches.all if launch.name in self.sources]
        kernels = {launch.name: self._estimated(launch) for launch in launched}
        cycles = sum(kernel.cycles * kernel.times for kernel in kernels.values())
        read = sum(kernel.hbm_read_bytes * kernel.times for kernel in kernels.values())
        written = sum(kernel.hbm_written_bytes * kernel.times for kernel in kernels.values())
        tops = self._run_top_level(kernels)
        if tops:
            cycles = max(top.time for top in tops)
            read = sum(top.engine.read_bytes for top in tops)
            written = sum(top.engine.written_bytes for top in tops)
            kernels = {
                name: replace(kernel, times=max(top.called[name] for top in tops))
                for name, kernel in kernels.items()
            }
        else:
            self.unresolved += self.launches.undecided
            copies = [launch for launch in self.launches.all if any(launch.copied)]
            read += sum(launch.copied[0] * launch.times for launch in copies)
            written += sum(launch.copied[1] * launch.times for launch in copies)
            if copies:
                names = _few(launch.name for launch in copies)
                self.unresolved.append(
                    f"the time of the copies at top level ({names}): their bytes are counted, and "
                    "no time, as if other work hid it"
                )
        for kernel in kernels.values():
            for what in kernel.unresolved:
                self.unresolved.append(f"{what}, in {kernel.name}{self._advice(kernel, what)}")
            if kernel.given_up:
                self.unresolved.append(f"the course of {kernel.name}: {kernel.given_up}")
        return ModuleEstimate(
            cycles,
            read,
            written,
            self.launches.prefetched_bytes,
            tuple(kernels.values()),
            bool(tops),
            tuple(dict.fromkeys(self.unresolved)),
        )

    def _sources(self) -> dict[str, str]:
        """Say which dumped program each launch runs: its own, or that of one that is alike."""
        own = {launch.name: _as_file(launch.name) for launch in self.launches.all}
        found = {name: file for name, file in own.items() if file in self.listings}
        by_shape = {self.launches[name].alike: file for name, file in found.items()}
        for launch in self.launches.all:
            if launch.name not in found and launch.alike in by_shape:
                found[launch.name] = by_shape[launch.alike]
        unused = set(self.listings) - set(found.values()) - {TOP_LEVEL}
        for file in sorted(unused):
            if file.strip("_") not in (_as_file(name).strip("_") for name in _NOT_CALLED):
                self.unresolved.append(f"the program {file}, which no instruction of the HLO names")
        return found

    def _advice(self, kernel: KernelEstimate, what: str) -> str:
        """Say what to do about a guess; empty where nothing can be done."""
        operand = _OPERAND.fullmatch(what)
        if operand is None or not kernel.pallas:
            return ""
        given = self.given.get(kernel.name)
        if given is None or int(operand[1]) not in given.unread:
            return _ASK
        return _UNREAD.format(given.types[int(operand[1])])

    def _matched(self, operands: tuple[KernelOperands, ...]) -> dict[str, KernelOperands]:
        """Give the kernels of the HLO the operands of those of the trace: by types, name, order."""
        waiting = list(operands)
        found = {}
        for launch in self.launches.all:
            same = [one for one in waiting if launch.pallas and one.types == launch.operands]
            stem = _as_word(_NUMBER.sub("", launch.name))
            same = [one for one in same if one.name and _as_word(one.name) == stem] or same
            if same:
                found[launch.name] = same[0]
                waiting.remove(same[0])
        return found

    def _program(self, name: str) -> KernelProgram:
        if name not in self.programs:
            file = self.sources[name]
            self.programs[name] = KernelProgram(
                name,
                self.listings[file],
                self.clock,
                self.tables.get(file, ""),
                {
                    **{i: (value,) for i, value in self.launches[name].constants.items()},
                    **(self.given[name].values if name in self.given else {}),
                },
            )
        return self.programs[name]

    def _estimated(self, launch: Launch) -> KernelEstimate:
        return self._program(launch.name).estimate(
            pallas=launch.pallas, times=launch.times, vmem_bytes=launch.vmem_bytes
        )

    def _run_top_level(self, kernels: dict[str, KernelEstimate]) -> list[Machine]:
        """Execute the top-level program on each core; empty where no course can be followed."""
        if TOP_LEVEL not in self.listings:
            self.unresolved.append("the top-level program, which was not dumped")
            return []
        try:
            program = KernelProgram(TOP_LEVEL, self.listings[TOP_LEVEL], self.clock)
            self.programs[TOP_LEVEL] = program
        except IRError as error:
            self.unresolved.append(f"the top-level program: {error}")
            return []
        self.unresolved += [
            f"the instruction {opcode}, in the top-level program"
            for opcode in program.program.unknown
        ]
        missing: dict[str, None] = {}
        # Its course is followed first without what it calls, since it may hang on a guess.
        machines: list[Machine] = []
        unsure: dict[str, int] = {}
        for core in range(int(self.clock.cores.value)):
            machine, guesses = self._followed(program, core)
            machines.append(machine)
            unsure |= guesses
        too_long = [machine for machine in machines if machine.endless]
        if not unsure and too_long and any(map(_TRIPS.match, self.launches.undecided)):
            raise TooLongError("the top-level program", program.how_far(too_long[0]))
        if not unsure and not too_long:
            courses = [machine.counts for machine in machines]
            machines = self._top_level_runs(program, kernels, missing)
            for machine, counts in zip(machines, courses, strict=True):
                if machine.counts != counts:  # it hangs on when the programs are done
                    unsure |= self._guessed(program, machine)
        left_out = [name for name in kernels if not any(one.called[name] for one in machines)]
        if any(machine.endless for machine in machines) or unsure or left_out:
            self.unresolved += [f"{what}, in the top-level program" for what in unsure]
            if left_out and not unsure:
                names = ", ".join(left_out)
                self.unresolved.append(f"when {names} runs, which the top-level program skips")
            elif not unsure:
                self.unresolved.append("the end of the top-level program")
            return []
        self.unresolved += [f"the program {name}, which was not dumped" for name in missing]
        return machines

    def _top_level_runs(
        self,
        program: KernelProgram,
        kernels: Mapping[str, KernelEstimate],
        missing: dict[str, None],
    ) -> list[Machine]:
        """Execute the top-level program on each core, and note what it calls that there is not."""

        def call(machine: Machine, name: str, now: float) -> float:
            if name in _NOT_CALLED:
                return now
            if name not in kernels:
                missing[name] = None
                return now
            if kernels[name].given_up:
                return now + kernels[name].cycles
            return self._called(machine, name, now)

        cores = range(int(self.clock.cores.value))
        return [program.executed(core=it, call=call, guess=_RUN_TIME_CELLS) for it in cores]

    def _called(self, machine: Machine, name: str, now: float) -> float:
        """Execute a kernel where the top-level program calls it.

        With the DMA engine at rest it takes each time what it took the first time. A core that has
        less to do waits for the other one.
        """
        program, engine = self._program(name), machine.engine
        own = program.cores[machine.core]
        late = program.alone.time - own.time
        if engine.free_at > now:
            return program.executed(core=machine.core, start=now, dma=engine).time + late
        took, moved = own.time + late, own.engine
        engine.read_bytes += moved.read_bytes
        engine.written_bytes += moved.written_bytes
        engine.started += moved.started
        engine.free_at = max(engine.free_at, now + moved.free_at)
        return now + took

    def _course(self, program: KernelProgram, core: int, **options: Any) -> Machine:
        """Execute the top-level program on a core, and let what it calls take no time."""
        return program.executed(
            core=core, call=lambda _, __, now: now, guess=_RUN_TIME_CELLS, **options
        )

    def _followed(self, program: KernelProgram, core: int) -> tuple[Machine, dict[str, int]]:
        """Follow the top-level program on a core, and return the guesses that change its course.

        Where other values end it soon, and those guessed do not, it is followed no further. One
        that is given up, and that no other value ends, does not hang on a guess: it is long.
        """
        for most in (_BLOCKS_AT_FIRST, MOST_BLOCKS):
            machine = self._course(program, core, most_blocks=most)
            guessed = self._guessed(program, machine)
            others = (
                self._course(
                    program,
                    core,
                    varied=frozenset(guessed),
                    variation=variation,
                    # One more than it had, and it took another course.
                    most_blocks=sum(machine.counts) + (not machine.endless),
                )
                for variation in (VARIATIONS[::-1] if guessed else ())
            )
            if not machine.endless:
                unsure = any(
                    other.counts != machine.counts or other.called != machine.called
                    for other in others
                )
                return machine, guessed if unsure else {}
            if not all(other.endless for other in others):
                return machine, guessed
        return machine, {}

    def _guessed(self, program: KernelProgram, machine: Machine) -> dict[str, int]:
        """Return the guesses of a run of the top-level program, and how often they were made.

        What it reads before it calls anything is the run time's, and known to let it run.
        """
        calls = [
            operation.bundle
            for block in program.program.blocks
            for operation in block.operations
            if operation.opcode == "inlined_call"
            and not operation.instruction.comment.startswith(_NOT_CALLED)
        ]
        first = min(calls, default=0)
        names = {
            name
            for name in +machine.unresolved
            if name.startswith((OPERAND_VALUES, BROUGHT))
            or ((at := _BUNDLE.search(name)) and int(at[1], 16) >= first)
        }
        return {name: machine.unresolved[name] for name in sorted(names)}


def _few(names: Iterable[str]) -> str:
    """Name up to three things, and say how many more there are."""
    named = list(names)
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _as_word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _as_file(name: str) -> str:
    """Return a program's name as libtpu writes it in the name of a file."""
    return re.sub(r"[^\w.\-]", "_", name)
