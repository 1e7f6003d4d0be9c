"""A reader's file in worker processes, seen from the parent.

A `FileWorker` holds one process that has loaded the file. When an attempt kills it or outlasts its
time, the outcome becomes a verdict and the next attempt gets a fresh process.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pallas_rungs
from pallas_rungs.compilers.chips import GPU, TPU, Machine
from pallas_rungs.compilers.dumps import SERVICE_VARIABLE
from pallas_rungs.compilers.process import (
    START_LIMIT,
    Died,
    Outcome,
    Reply,
    TimedOut,
    Worker,
    WorkerStartError,
)
from pallas_rungs.compilers.service import ADDRESS_VARIABLE
from pallas_rungs.ladder.estimate_beside import with_estimate
from pallas_rungs.ladder.loading import LoadError
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Frame, KernelError, Verdict

DEVICES = 8
"""CPU devices that a worker has, so that programs for several devices run."""

_COUNT_FLAG = "--xla_force_host_platform_device_count"


@dataclass(frozen=True)
class FileRequest:
    """What is tried: a file's symbol, and with which inputs.

    Attributes:
      path: the file.
      symbol: the function in it.
      args: argument string, or None for what the file itself gives.
      reference_path: file of the reference; empty when none was named.
      reference_symbol: the reference in it.
      seed: seed of random inputs.
      rtol: relative tolerance, None for the default.
      atol: absolute tolerance, None for the default.
      over: names of arguments that an estimate will be given beside those.
    """

    path: str
    symbol: str
    args: str | None = None
    reference_path: str = ""
    reference_symbol: str = ""
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempted:
    """A verdict, and why it should be tried again with the chip named before the import."""

    verdict: Verdict
    escalate: str = ""


class NeedsChipError(LoadError):
    """The file cannot be imported on a machine that shows a CPU.

    Attributes:
      machine: the machine that it asks for.
    """

    def __init__(self, message: str, machine: Machine = TPU) -> None:
        super().__init__(message)
        self.machine = machine


WARM_COMPILER = "PALLAS_RUNGS_WARM_COMPILER"
"""Names the machine whose compiler a worker will need: it is started with the worker's own."""

DUMPING = "TPU, dumping"
"""The same for a TPU's compiler that dumps what estimates are made of."""

ESTIMATE_LIMIT = 20.0
"""Seconds that the estimate beside a compiled program may take."""


def worker_environment(
    *, compiles: Machine | None = None, compilers: str = "", estimates: bool = False
) -> dict[str, str | None]:
    """Environment of a process that runs a reader's file on the CPU, with several devices.

    Args:
      compiles: the machine whose compiler it will need, and starts with itself; None if none.
      compilers: address of a service of compilers to ask instead.
      estimates: its compiler, or those of the service, are to dump what estimates are made of.

    XLA's CPU runtime blocks a thread of its pool for every device that waits for another one, so
    the pool (`NPROC`) must have at least twice as many threads as there are devices.
    """
    dumping = estimates and compiles is TPU
    flags = os.environ.get("XLA_FLAGS", "")
    if _COUNT_FLAG not in flags:
        flags = f"{flags} {_COUNT_FLAG}={DEVICES}".strip()
    return {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": flags,
        "NPROC": os.environ.get("NPROC", str(2 * DEVICES)),
        WARM_COMPILER: (DUMPING if dumping else compiles.name) if compiles else None,
        **({SERVICE_VARIABLE if dumping else ADDRESS_VARIABLE: compilers} if compilers else {}),
    }


class FileWorker:
    """The file, loaded in a process of its own.

    `problems` are the names of the loaded file's problems, `files` the reader's own files that were
    imported for it.

    Args:
      request: what to load.
      time_limit: seconds for loading the file, and for each attempt.
      pretend_chip: the chip to name before the file is imported.
      pretend_level: how insistently (see `pretend.LEVELS`); 0 names none.
      pretend_why: why it is named, for the verdicts.
      cache: whether compiler outcomes may come from the disk cache.
      compiles: the machine whose compiler will be tried; None if none.
      compilers: address of a service of compilers; empty for a compiler of its own.
      estimates: whether an estimate is to stand beside what compiled for a TPU.
    """

    def __init__(
        self,
        request: FileRequest,
        *,
        time_limit: float,
        pretend_chip: str = "",
        pretend_level: int = 0,
        pretend_why: str = "",
        cache: bool = True,
        compiles: Machine | None = None,
        compilers: str = "",
        estimates: bool = False,
    ) -> None:
        self.request = request
        self.time_limit = time_limit
        self.pretend_chip = pretend_chip
        self.pretend_level = pretend_level
        self.pretend_why = pretend_why
        self.cache = cache
        self.estimates = estimates
        self.problems: tuple[str, ...] = ()
        self.files: tuple[str, ...] = ()
        self._loaded = False
        self._printed_before = 0
        self._worker = Worker(
            "pallas_rungs.ladder.worker_main",
            env=worker_environment(compiles=compiles, compilers=compilers, estimates=estimates),
            cwd=Path.cwd(),
        )

    @property
    def printed_lines(self) -> int:
        """How many lines the file has printed so far, for this request."""
        return self._worker.printed_lines - self._printed_before

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines that it printed."""
        new = self.printed_lines
        return self._worker.last_lines[-new:] if new else ()

    @property
    def alive(self) -> bool:
        """Whether its process is up."""
        return self._worker.alive

    def turn_to(self, request: FileRequest) -> None:
        """Take up another request on the same file; what is loaded stays loaded."""
        self.request = request
        self._loaded = False
        self._printed_before = self._worker.printed_lines

    def start(self) -> None:
        """Start the process without waiting for it."""
        self._worker.start()

    def interrupt(self) -> None:
        """Kill the process from another thread than the one that waits for it."""
        self._worker.interrupt()

    def close(self) -> None:
        """End the process."""
        self._worker.close()

    def load(self) -> tuple[str, ...]:
        """Load the file in a process, if it is not, and return the names of its problems.

        Raises:
          NeedsChipError: it cannot be imported where only a CPU is seen.
          LoadError: it cannot be loaded; the message says why.
        """
        if self._loaded and self._worker.alive:
            return self.problems
        header = {
            "op": "load",
            **vars(self.request),
            "pretend_chip": self.pretend_chip,
            "pretend_level": self.pretend_level,
        }
        name = Path(self.request.path).name
        try:
            outcome = self._worker.request(header, time_limit=self.time_limit)
        except WorkerStartError as error:
            raise LoadError(str(error)) from None
        if isinstance(outcome, Died):
            raise LoadError(
                f"{name} could not be imported: {outcome} while it was executed"
                + _at(_frame_of(outcome.last_lines, self._roots()))
            )
        if isinstance(outcome, TimedOut):
            how = "standing still" if outcome.idle else "still busy"
            if any(line.endswith(" in make_inputs") for line in outcome.stack):
                raise LoadError(
                    f"the arguments could not be made: that was {how} after "
                    f"{outcome.seconds:.2g} s; give smaller shapes, or a larger --time-limit"
                )
            raise LoadError(
                f"{name} could not be imported: it was {how} after {outcome.seconds:.2g} s"
                + _at(_frame_of(outcome.stack, self._roots()))
            )
        if error_text := outcome.header.get("error"):
            if outcome.header.get("escalate"):
                raise NeedsChipError(error_text, _machine(outcome.header))
            raise LoadError(error_text)
        self.problems = tuple(outcome.header["problems"])
        self.files = tuple(outcome.header["files"])
        self._loaded = True
        return self.problems

    def machine(self, problem: int) -> Machine:
        """The machine that a problem's kernels are written for; a TPU where that is not known."""
        try:
            self.load()
        except LoadError:
            return TPU
        outcome = self._worker.request(
            {"op": "machine", "problem": problem}, time_limit=self.time_limit
        )
        return _machine(outcome.header) if isinstance(outcome, Reply) else TPU

    def settings(self, problem: int, chip: str) -> tuple[str, ...]:
        """The simulator settings to try a problem with; the plain one where it cannot be traced."""
        try:
            self.load()
        except LoadError:
            return ("default",)
        try:
            outcome = self._worker.request(
                {"op": "settings", "problem": problem, "chip": chip}, time_limit=self.time_limit
            )
        except WorkerStartError:
            return ("default",)
        return tuple(outcome.header["settings"]) if isinstance(outcome, Reply) else ("default",)

    def attempt(self, problem: int, rung: Rung, target: str, chip: str) -> Attempted:
        """Try one problem on one rung and target, in a fresh process if the last one is gone."""
        try:
            self.load()
        except LoadError as error:
            return Attempted(_not_loaded(rung, target, error))
        header = {
            "op": "attempt",
            "problem": problem,
            "rung": str(rung),
            "target": target,
            "chip": chip,
            "time_limit": self.time_limit,
            "cache": self.cache,
            "estimates": self.estimates,
        }
        # The compiler has its own limit within the worker, and may first have to start.
        limit = self.time_limit * 1.5 + START_LIMIT if rung is Rung.COMPILE else self.time_limit
        try:
            outcome = self._worker.request(header, time_limit=limit)
        except WorkerStartError as error:
            return Attempted(_not_loaded(rung, target, error))
        if isinstance(outcome, Reply):
            verdict = Verdict.from_json(outcome.header["verdict"])
            if outcome.header["estimable"]:
                verdict = with_estimate(verdict, self._estimate_compiled())
            return Attempted(self._noted(verdict), outcome.header.get("escalate", ""))
        if isinstance(outcome, Died):
            return Attempted(self._noted(self._crashed(rung, target, outcome)))
        return Attempted(self._noted(self._timed_out(rung, target, outcome)))

    def _estimate_compiled(self) -> dict[str, Any]:
        """Estimate what the last attempt compiled; whatever comes of it, there is an answer."""
        try:
            outcome = self._worker.request({"op": "estimate_compiled"}, time_limit=ESTIMATE_LIMIT)
        except WorkerStartError as error:
            return {"none": str(error)}
        if isinstance(outcome, Reply):
            found: dict[str, Any] = outcome.header["estimate"]
            return found
        if isinstance(outcome, TimedOut):
            return {"none": f"it took longer than {ESTIMATE_LIMIT:.0f} s"}
        return {"none": str(outcome)}

    def estimate(self, problem: int, chip: str, configuration: str = "{}") -> dict[str, Any]:
        """Estimate the time of one problem on a chip, in a fresh process if the last one is gone.

        Args:
          problem: its number.
          chip: the chip.
          configuration: further arguments by name, as Python writes a dict of literals.

        Returns:
          `estimate` (plain JSON data) and `text`; or `error`, the `kind` of what came of compiling,
          both as a sweep keeps them, as `told`, and, where it may help to name the chip before the
          import, why, as `escalate`.
        """
        self.load()
        trace = {"op": "trace", "problem": problem, "chip": chip, "configuration": configuration}
        limited = {"op": "estimate", "chip": chip, "time_limit": self.time_limit}
        # The compiler has its own limit within the worker, and may first have to start.
        limits = (self.time_limit, self.time_limit * 1.5 + START_LIMIT)
        told: dict[str, Any] = {}
        try:
            for header, limit in zip((trace, limited), limits, strict=True):
                told = self._told(self._worker.request(header, time_limit=limit), chip)
                if "error" in told:
                    break
        except WorkerStartError as error:
            return {"error": str(error), "kind": "unavailable"}
        return told

    def _told(self, outcome: Outcome, chip: str) -> dict[str, Any]:
        """What an estimate's request came to, its end or its lateness told like an error."""
        if isinstance(outcome, Reply):
            return outcome.header
        if isinstance(outcome, Died):
            kind, verdict = "crashed", self._crashed(Rung.COMPILE, chip, outcome)
        else:
            kind, verdict = "timed out", self._timed_out(Rung.COMPILE, chip, outcome)
            kind = "deadlocked" if verdict.status is Status.DEADLOCKED else kind
        assert verdict.error is not None
        advice = f"\n  → {verdict.error.advice}" if verdict.error.advice else ""
        return {"error": f"{verdict.summary}{_at(verdict.error.frame)}{advice}", "kind": kind}

    def _noted(self, verdict: Verdict) -> Verdict:
        if not self.pretend_level:
            return verdict
        details = dict(verdict.details)
        details["pretend_before_import"] = {
            "chip": self.pretend_chip,
            "level": self.pretend_level,
            "why": self.pretend_why,
        }
        summary = f"{verdict.summary} (with {self.pretend_chip} named before the import)".strip()
        return replace(verdict, details=details, summary=summary)

    def _crashed(self, rung: Rung, target: str, died: Died) -> Verdict:
        frame = _frame_of(died.last_lines, self._roots())
        last = next((line for line in reversed(died.last_lines) if "Check failed" in line), "")
        message = f"{died}: {last.strip()}" if last else str(died)
        advice = ""
        if died.exit_code is not None:
            advice = "something it calls ends the process (os._exit, or exit in a library)"
        elif died.signal_name == "SIGKILL":
            advice = "it may have run out of memory; try smaller shapes"
        return Verdict.of(
            rung,
            Status.CRASHED,
            target,
            message,
            error=KernelError(
                died.signal_name
                or ("broken pipe" if died.exit_code is None else f"exit code {died.exit_code}"),
                message,
                "\n".join((message, *died.last_lines[-40:])),
                frame,
                advice,
            ),
            seconds=died.seconds,
        )

    def _timed_out(self, rung: Rung, target: str, late: TimedOut) -> Verdict:
        frame = _frame_of(late.stack, self._roots())
        if late.idle:
            status, how = Status.DEADLOCKED, "stood still, using no CPU"
            advice = "a wait (semaphore, DMA, barrier or lock) that nothing ever satisfies"
        else:
            status, how = Status.TIMED_OUT, "was still busy"
            advice = "try smaller shapes, or a larger --time-limit, if it is slow and not endless"
        message = (
            f"it {how} after {late.seconds:.0f} s ({late.cpu_seconds:.0f} s of CPU time in all)"
        )
        return Verdict.of(
            rung,
            status,
            target,
            message,
            error=KernelError(
                "TimeoutError", message, "\n".join((message, *late.stack)), frame, advice
            ),
            details={"cpu_seconds": round(late.cpu_seconds, 2)},
            seconds=late.seconds,
        )

    def _roots(self) -> tuple[str, ...]:
        folders = {str(Path(self.request.path).parent)}
        if self.request.reference_path:
            folders.add(str(Path(self.request.reference_path).parent))
        return tuple(folders)


def _not_loaded(rung: Rung, target: str, error: Exception) -> Verdict:
    """The verdict where the file was loaded once and cannot be again."""
    return Verdict.of(
        rung,
        Status.CRASHED,
        target,
        "the file could not be loaded a second time",
        error=KernelError("LoadError", str(error).split("\n", 1)[0], str(error)),
    )


def _machine(answer: dict[str, Any]) -> Machine:
    return GPU if answer.get("machine") == GPU.name else TPU


_STACK_LINE = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$')
_NOT_THE_READERS = tuple(
    str(Path(folder).resolve()) + os.sep
    for folder in (
        Path(pallas_rungs.__file__).parent,
        sysconfig.get_paths()["stdlib"],
        sysconfig.get_paths()["purelib"],
        sysconfig.get_paths()["platlib"],
        Path(sys.prefix) / "lib",
    )
)


def _frame_of(lines: Sequence[str], roots: Sequence[str]) -> Frame | None:
    """The reader's innermost line in a stack that faulthandler printed (innermost first)."""
    own: Frame | None = None
    for text in lines:
        match = _STACK_LINE.match(text)
        if match is None:
            continue
        file = match["file"]
        in_roots = any(
            file.startswith(root + os.sep) and "site-packages" not in file[len(root) :]
            for root in roots
        )
        if not in_roots and (file.startswith(_NOT_THE_READERS) or not Path(file).exists()):
            continue
        number = int(match["line"])
        frame = Frame(file, number, match["function"], _source_line(file, number))
        if in_roots:
            return frame
        own = own or frame
    return own


def _source_line(file: str, number: int) -> str:
    try:
        return Path(file).read_text(errors="replace").splitlines()[number - 1].strip()
    except (OSError, IndexError):
        return ""


def _at(frame: Frame | None) -> str:
    return "" if frame is None else f"\n  at {frame.file}:{frame.line}: {frame.source}"
