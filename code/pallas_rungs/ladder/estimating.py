"""Estimates for a reader's own file, which is executed in a worker process with a time limit."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pallas_rungs.compilers.chips import TPU
from pallas_rungs.ladder.arguments import check_size, parse_arguments
from pallas_rungs.ladder.loading import LoadError, Target
from pallas_rungs.ladder.workers import FileRequest, FileWorker, NeedsChipError
from pallas_rungs.performance.clock import clock_of

TIME_LIMIT = 120.0
"""Seconds for importing the file and for each estimate when nothing else is said."""

_LEVELS = (0, 2, 3)
"""How insistently the chip is named before the file is imported: not at first."""


@dataclass(frozen=True)
class FileEstimate:
    """What came of one problem of a file on one chip.

    Attributes:
      name: the problem's name.
      chip: the chip's name.
      estimate: plain JSON data; empty where there is none.
      text: the estimate as text.
      error: why there is none; empty where there is one.
      kind: what came of compiling where there is none, "refused", "unavailable", …
      told: the same as a sweep keeps it: `kind`, `error_type`, `message` in one line, `memory`.
    """

    name: str
    chip: str
    estimate: dict[str, Any]
    text: str = ""
    error: str = ""
    kind: str = ""
    told: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        if self.error:
            return {"name": self.name, "chip": self.chip, "kind": self.kind, "error": self.error}
        return self.estimate


def estimate_file(
    target: Target,
    *,
    args: str | None = None,
    chips: Sequence[str] | None = None,
    case: str | None = None,
    time_limit: float = TIME_LIMIT,
    seed: int = 0,
) -> list[FileEstimate]:
    """Estimate the time of a function of a reader's file. This executes the file.

    Args:
      target: the file and the function.
      args: its arguments as text; None takes what the file gives (`cases()` or `inputs()`).
      chips: TPU chips; None takes v5e.
      case: estimate only the problem of this name.
      time_limit: seconds for importing the file and for each estimate.
      seed: seed of random inputs; integers among them may decide where a kernel goes.

    Returns:
      One for each problem and chip, problem by problem.

    Raises:
      LoadError: the file or the symbol cannot be tried at all; the message says why.
      ArgumentError: `args` does not parse, or stands for arrays too large for this machine.
      ValueError: no such chip, or one whose constants are not known.
      FileEstimatesInterrupted: after Ctrl-C; holds what there is. No worker is left.
    """
    return estimate_files(
        target, None, args=args, chips=chips, case=case, time_limit=time_limit, seed=seed
    )[0]


def estimate_files(
    target: Target,
    against: Target | None,
    *,
    args: str | None = None,
    chips: Sequence[str] | None = None,
    case: str | None = None,
    time_limit: float = TIME_LIMIT,
    seed: int = 0,
) -> tuple[list[FileEstimate], list[FileEstimate]]:
    """Estimate a function and another one on the same arguments; see `estimate_file`.

    Nothing is estimated before both are loaded and found to be of the same arguments.

    Args:
      target: the file and the function.
      against: those of the other function; None for none.
      args: arguments as text, of both.
      chips: TPU chips; None takes v5e.
      case: estimate only the problem of this name.
      time_limit: seconds for importing a file and for each estimate.
      seed: seed of random inputs.

    Returns:
      The estimates of the first function, problem by problem, and those of the other.

    Raises:
      LoadError: a file or symbol cannot be tried at all, or they are not of the same arguments.
      ArgumentError: see `estimate_file`; so the rest.
      FileEstimatesInterrupted: after Ctrl-C; holds what there is. No worker is left.
    """
    names = tuple(dict.fromkeys(clock_of(chip).chip for chip in chips or (TPU.default_chip,)))
    if args is not None:
        check_size(parse_arguments(args, x64=True))
    targets = [target] if against is None else [target, against]
    found: list[list[FileEstimate]] = [[], []]
    try:
        with contextlib.ExitStack() as stack:
            hands: list[tuple[Estimating, list[tuple[int, str]]]] = []
            for one in targets:
                request = FileRequest(str(one.path), one.symbol, args, seed=seed)
                hand = stack.enter_context(Estimating(request, time_limit))
                problems = hand.load(names[0])
                hands.append((hand, [(index, problems[index]) for index in hand.chosen(case)]))
            if against is not None and len(hands[0][1]) != len(hands[1][1]):
                raise LoadError(
                    f"{target.symbol} has {len(hands[0][1])} cases and {against.symbol} "
                    f"{len(hands[1][1])}, so they are not of the same arguments: "
                    "give them by --args"
                )
            for place in range(len(hands[0][1])):
                for chip in names:
                    for (hand, chosen), into in zip(hands, found, strict=False):
                        into.append(hand.estimate(*chosen[place], chip))
    except KeyboardInterrupt:
        raise FileEstimatesInterrupted(found[0], found[1]) from None
    return found[0], found[1]


class FileEstimatesInterrupted(KeyboardInterrupt):
    """Estimates were interrupted; none that was made is lost.

    Attributes:
      found: those of the function until then.
      against: those of the other function, as many or one less.
    """

    def __init__(self, found: list[FileEstimate], against: list[FileEstimate]) -> None:
        super().__init__("interrupted")
        self.found = found
        self.against = against


class Estimating:
    """The worker in use, and how insistently it names the chip. A context manager."""

    def __init__(self, request: FileRequest, time_limit: float) -> None:
        self._request = request
        self._time_limit = time_limit
        self._worker: FileWorker | None = None

    def __enter__(self) -> Estimating:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.close()

    def interrupt(self) -> None:
        """Kill the worker from another thread than the one that waits for it."""
        if self._worker is not None:
            self._worker.interrupt()

    def chosen(self, case: str | None) -> list[int]:
        """The problems of this name, or all, by their numbers; after `load`.

        Raises:
          LoadError: there is none; the message lists those that there are.
        """
        assert self._worker is not None
        problems, symbol = self._worker.problems, self._request.symbol
        short = [name.removeprefix(symbol).strip() for name in problems]
        found = [
            index
            for index, name in enumerate(problems)
            if case is None or case in (name, short[index])
        ]
        if not found:
            there = ", ".join(brief or name for brief, name in zip(short, problems, strict=True))
            name = Path(self._request.path).name
            raise LoadError(f"{name} gives no case {case!r}; its cases are {there}")
        return found

    def load(self, chip: str) -> tuple[str, ...]:
        """Load the file; where it cannot be imported on a CPU, with the chip named."""
        last: LoadError | None = None
        for level in _LEVELS:
            try:
                return self._at(level, chip, str(last or "")).load()
            except NeedsChipError as error:
                last = error
        assert last is not None
        raise last

    def estimate(
        self, index: int, name: str, chip: str, configuration: Mapping[str, object] | None = None
    ) -> FileEstimate:
        """Estimate a problem; where it asks for the chip, with the chip named before the import.

        Args:
          index: the problem's number.
          name: its name.
          chip: the chip.
          configuration: further arguments by name, Python literals.
        """
        given = repr(dict(configuration or {}))
        worker = self._worker
        assert worker is not None
        level = worker.pretend_level
        told = self._at(level, chip, worker.pretend_why).estimate(index, chip, given)
        if why := told.get("escalate"):
            for higher in _LEVELS[1:]:
                again = self._at(higher, chip, why).estimate(index, chip, given)
                if "error" not in again or again["error"] != told["error"]:
                    told = again
                    break
        return FileEstimate(
            name,
            chip,
            told.get("estimate", {}),
            told.get("text", ""),
            told.get("error", ""),
            told.get("kind", ""),
            told.get("told", {}),
        )

    def _at(self, level: int, chip: str, why: str) -> FileWorker:
        """The worker that names the chip so insistently: the one in use, or a new one."""
        worker = self._worker
        if worker is not None:
            if worker.pretend_level == level and (not level or worker.pretend_chip == chip):
                return worker
            worker.close()
        self._worker = FileWorker(
            self._request,
            time_limit=self._time_limit,
            pretend_chip=chip if level else "",
            pretend_level=level,
            pretend_why=why,
        )
        return self._worker
