"""The climb of a reader's own file: every rung in a worker process, with a time limit.

The file is executed. What it does to its process (dies, hangs, prints, leaves) becomes a verdict or
one clear error, and the other rungs go on in a fresh process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pallas_rungs.compilers.chips import TPU, Machine, chip_named
from pallas_rungs.ladder.arguments import check_size, parse_arguments
from pallas_rungs.ladder.loading import LoadError, parse_target
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.status import EVERY_RUNG_HERE, Rung, Status
from pallas_rungs.ladder.verdict import Verdict
from pallas_rungs.ladder.workers import (
    Attempted,
    FileRequest,
    FileWorker,
    NeedsChipError,
)

TIME_LIMIT = 60.0
"""Seconds that one attempt may take when nothing else is said."""

_LEVELS_BEFORE_IMPORT = (2, 3)
_NEVER_TRACED = (Status.TIMED_OUT, Status.DEADLOCKED, Status.CRASHED)


@dataclass(frozen=True)
class FileClimb:
    """The climb of a file.

    Attributes:
      target: FILE:SYMBOL.
      reports: one for each problem that the file gave.
      printed_lines: how many lines the file printed while it was tried.
      last_lines: the last of them.
      files: the reader's own files that were imported.
      error: why nothing could be tried; empty when something was.
    """

    target: str
    reports: tuple[Report, ...]
    printed_lines: int = 0
    last_lines: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    error: str = ""

    @property
    def passed(self) -> bool:
        """True when every rung asked for passed on every problem."""
        return not self.error and all(report.passed for report in self.reports)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "target": self.target,
            "passed": self.passed,
            "reports": [report.to_json() for report in self.reports],
            "printed_lines": self.printed_lines,
            **({"error": self.error} if self.error else {}),
        }


class Shelf:
    """Keeps a file's worker between two climbs of the same file, so that it is loaded once."""

    def __init__(self) -> None:
        self._kept: FileWorker | None = None

    def __enter__(self) -> Shelf:
        return self

    def __exit__(self, *_: object) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def take(self, request: FileRequest) -> FileWorker | None:
        """Return the kept worker, turned to `request`; None if there is none for its file."""
        worker, self._kept = self._kept, None
        if worker is None:
            return None
        if worker.request.path != request.path or not worker.alive:
            worker.close()
            return None
        worker.turn_to(request)
        return worker

    def put(self, worker: FileWorker) -> None:
        """Keep a worker that is healthy and pretends nothing; end any other."""
        if worker.alive and not worker.pretend_level:
            self._kept = worker
        else:
            worker.close()


def climb_file(
    path: str | Path,
    symbol: str,
    *,
    args: str | None = None,
    reference: str | None = None,
    rungs: Sequence[Rung] = EVERY_RUNG_HERE,
    chips: Sequence[str] | None = None,
    case: str | None = None,
    time_limit: float = TIME_LIMIT,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    cache: bool = True,
    on_verdict: Callable[[str, Verdict], None] | None = None,
    shelf: Shelf | None = None,
    compilers: str = "",
    estimates: bool = False,
) -> FileClimb:
    """Try a function of a reader's file on the rungs. This executes the file.

    Args:
      path: the file.
      symbol: a function in it that calls a Pallas kernel.
      args: its arguments as text, e.g. `"f32[256,512], bf16[512,512]"`; None takes what the file
        gives (`cases()` or `inputs()`).
      reference: `FILE:SYMBOL`, or the name of a function in the same file, to compare with.
      rungs: which rungs.
      chips: chips for the rungs that need one; None takes v5e, and h100 for kernels that are
        plainly written for a GPU.
      case: try only the problem of this name.
      time_limit: seconds for importing the file and for each attempt.
      seed: seed of random inputs.
      rtol: relative tolerance; None takes that of the dtype.
      atol: absolute tolerance; None takes that of the dtype.
      cache: whether compiler outcomes may come from the disk cache.
      on_verdict: called with the problem's name and each verdict as it comes.
      shelf: where a worker may be found and left, for climbs of the same file in turn.
      compilers: address of a service of compilers; empty for a compiler of the climb's own.
      estimates: whether an estimate is to stand beside what compiles for a TPU. A service's workers
        must then be those of `compilers.dumps.service`.

    Raises:
      LoadError: the file or the symbol cannot be tried at all; the message says why.
      ArgumentError: `args` does not parse, or stands for arrays too large for this machine.
      ValueError: no such chip.
    """
    target = parse_target(f"{path}:{symbol}")
    if args is not None:
        check_size(parse_arguments(args, x64=True))
    named = None
    if reference is not None:
        given = reference if ":" in reference else f"{path}:{reference}"
        named = parse_target(given, "the reference")
    request = FileRequest(
        path=str(target.path),
        symbol=symbol,
        args=args,
        reference_path="" if named is None else str(named.path),
        reference_symbol="" if named is None else named.symbol,
        seed=seed,
        rtol=rtol,
        atol=atol,
    )
    named_chips = None if chips is None else tuple(dict.fromkeys(chip_named(c).name for c in chips))
    if named_chips == ():
        raise ValueError("no chip was named")
    compiles = Rung.COMPILE in rungs
    posed = _Climb(request, named_chips, time_limit, cache, compiles, compilers, shelf, estimates)
    with _climbing(posed) as climb:
        names = climb.load()
        indices = [
            index
            for index, name in enumerate(names)
            if case is None or case in (name, name.removeprefix(symbol).strip())
        ]
        if not indices:
            there = ", ".join(name.removeprefix(symbol).strip() or name for name in names)
            raise LoadError(f"{target.path.name} gives no case {case!r}; its cases are {there}")
        done = []
        for index in indices:
            verdicts = []
            climb.choose_chips(index)
            for verdict in climb.verdicts(index, rungs):
                verdicts.append(verdict)
                if on_verdict is not None:
                    on_verdict(names[index], verdict)
            done.append(Report(names[index], tuple(verdicts)))
        climb.close()
        return FileClimb(
            str(target), tuple(done), climb.printed_lines, climb.last_lines, climb.files
        )


@dataclass
class _Climb:
    """The worker in use, and what has been learnt about naming the chip before the import.

    Attributes:
      named_chips: the chips that were asked for, None where none was.
      machine: what the problem in hand is for, where no chip was asked for.
    """

    request: FileRequest
    named_chips: tuple[str, ...] | None
    time_limit: float
    cache: bool
    compiles: bool
    compilers: str = ""
    shelf: Shelf | None = None
    estimates: bool = False
    level: int = 0
    why: str = ""
    hopeless: bool = False
    machine: Machine = TPU
    worker: FileWorker | None = None
    printed_lines: int = 0
    last_lines: tuple[str, ...] = field(default=())
    files: tuple[str, ...] = ()

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips to try."""
        return self.named_chips or (self.machine.default_chip,)

    def choose_chips(self, problem: int) -> None:
        """See for which machine a problem is, where no chip was asked for."""
        if self.named_chips is None:
            self.machine = self._use(self.level, self.chips[0]).machine(problem)

    def load(self) -> tuple[str, ...]:
        """Load the file; where it cannot be imported on a CPU, with the first chip named."""
        try:
            return self._use(0, self.chips[0]).load()
        except NeedsChipError as first:
            last: LoadError = first
            self.machine = first.machine
            chip = self.chips[0]
            for level in _LEVELS_BEFORE_IMPORT:
                try:
                    problems = self._use(level, chip, str(first)).load()
                except LoadError as error:
                    last = error
                    continue
                self.level, self.why = level, str(first)
                return problems
            raise last from None

    def verdicts(self, problem: int, rungs: Sequence[Rung]) -> Iterator[Verdict]:
        """Try a problem on the rungs, in the order given."""
        hung: Verdict | None = None
        for rung in rungs:
            for target in self._targets(problem, rung, hung):
                if hung is not None:
                    yield _not_tried(hung, rung, target)
                    continue
                verdict = self.attempt(problem, rung, target)
                yield verdict
                if rung is Rung.TRACE and verdict.status in _NEVER_TRACED:
                    hung = verdict

    def _targets(self, problem: int, rung: Rung, hung: Verdict | None) -> tuple[str, ...]:
        if rung in (Rung.LOWER, Rung.COMPILE):
            return self.chips
        if rung is not Rung.SIMULATE:
            return ("",)
        if hung is not None:
            return ("default",)
        chip = self.chips[0]
        return self._use(self.level, chip).settings(problem, chip)

    def attempt(self, problem: int, rung: Rung, target: str) -> Verdict:
        """Try once; where it asks for the chip, again with the chip named before the import."""
        chip = target if target in self.chips else self.chips[0]
        first = self._attempt(self.level, chip, problem, rung, target)
        if not first.escalate or self.hopeless:
            return first.verdict
        no_kernel = first.verdict.status is Status.NO_KERNEL
        for level in _LEVELS_BEFORE_IMPORT[-1:] if no_kernel else _LEVELS_BEFORE_IMPORT:
            self._use(level, chip, first.escalate)
            again = self._attempt(level, chip, problem, rung, target)
            if _got_further(first.verdict, again.verdict):
                self.level, self.why = level, first.escalate
                return again.verdict
        self.hopeless = True
        return first.verdict

    def close(self) -> None:
        """End the worker."""
        if self.worker is not None:
            self.printed_lines += self.worker.printed_lines
            self.last_lines = (*self.last_lines, *self.worker.last_lines)[-400:]
            self.files = self.worker.files or self.files
            if self.shelf is None:
                self.worker.close()
            else:
                self.shelf.put(self.worker)
            self.worker = None

    def _attempt(self, level: int, chip: str, problem: int, rung: Rung, target: str) -> Attempted:
        return self._use(level, chip).attempt(problem, rung, target, chip)

    def _use(self, level: int, chip: str, why: str = "") -> FileWorker:
        """The worker at that level: the one in use where it is the right one, else a new one."""
        worker = self.worker
        if (
            worker is not None
            and worker.pretend_level == level
            and (not level or worker.pretend_chip == chip)
        ):
            return worker
        self.close()
        if self.shelf is not None and not level and (kept := self.shelf.take(self.request)):
            self.worker = kept
            return kept
        self.worker = FileWorker(
            self.request,
            time_limit=self.time_limit,
            pretend_chip=chip if level else "",
            pretend_level=level,
            pretend_why=why or self.why,
            cache=self.cache,
            compiles=chip_named(self.chips[0]).machine if self.compiles else None,
            compilers=self.compilers,
            estimates=self.estimates,
        )
        return self.worker


@contextmanager
def _climbing(climb: _Climb) -> Iterator[_Climb]:
    try:
        yield climb
    finally:
        climb.close()


def _not_tried(hung: Verdict, rung: Rung, target: str) -> Verdict:
    """The verdict of a rung above, where the program never came back from being traced."""
    what = "ended its process" if hung.status is Status.CRASHED else "did not end"
    return Verdict.of(
        rung,
        hung.status,
        target,
        f"not tried: every rung starts by tracing, and that {what}",
        error=hung.error,
        details={"not_tried": True},
    )


def _got_further(first: Verdict, again: Verdict) -> bool:
    """Whether naming the chip changed what there is to judge."""
    if again.status in (Status.NO_KERNEL, Status.CRASHED, Status.UNAVAILABLE):
        return False
    if first.status is Status.NO_KERNEL:
        return True
    same = (
        first.error is not None
        and again.error is not None
        and (first.error.message == again.error.message)
    )
    return again.status is not first.status or not same
