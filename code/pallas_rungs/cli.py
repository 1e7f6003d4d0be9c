"""The command line: `python -m pallas_rungs climb FILE:SYMBOL` and `python -m pallas_rungs doctor`.

Exit codes of `climb`:
  0  every rung asked for passed;
  1  a rung found fault: wrong, refused, no kernel, deadlocked, timed out, crashed, or the reference
     itself failed;
  2  nothing could be tried: a usage error, a file that cannot be loaded, a symbol that is missing;
  3  nothing was found wrong, but not everything was proved: unchecked (it ran, there was no
     reference to compare with), tool cannot, unavailable;
  130  interrupted.

This module imports neither jax nor the reader's file; both live in worker processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pallas_rungs import __version__

if TYPE_CHECKING:
    from pallas_rungs.ladder.files import FileClimb
    from pallas_rungs.ladder.report import Report
    from pallas_rungs.ladder.verdict import Verdict

PASSED, FAULT, USAGE, NOT_PROVED, INTERRUPTED = 0, 1, 2, 3, 130

_EPILOG = """
climb executes the file, with your rights, in worker processes on this machine. Do not climb a file
that you would not run.

arguments
  --args 'f32[256,512], bf16[512,512]'   a dtype and a shape each; a scalar is i32 or i32[]
  --args 'f32[64,128], i32[8]{0:4}'      a range, the upper end excluded
  --args 'f32[256,256], 128, True'       Python numbers, flags and quoted words pass as they are
  dtypes: f32 bf16 f16 f64 i8 i16 i32 i64 u8 u16 u32 u64 i4 u4 bool f8_e4m3fn f8_e5m2 ...
  Without --args the file's own cases() or inputs() is used; without --reference its own
  SYMBOL_reference(), reference() or want(), where it has one.

exit code
  0 every rung asked for passed · 1 a rung found fault · 2 nothing could be tried ·
  3 nothing found wrong, but not all proved (unchecked, tool cannot, unavailable) · 130 interrupted
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        name = self.prog.removeprefix("python -m ")
        self.exit(USAGE, f"{name}: {message}  (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parser().parse_args(argv)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        from pallas_rungs.compilers.process import close_all

        close_all()
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAULT


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m pallas_rungs",
        description="Try a Pallas kernel on every rung that needs no chip.",
    )
    parser.add_argument("--version", action="version", version=f"pallas-rungs {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    climb = commands.add_parser(
        "climb",
        help="try a kernel of your own (this executes its file)",
        description="Try a function that calls a Pallas kernel on the rungs. "
        "This executes the file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    climb.set_defaults(run=_climb)
    climb.add_argument("target", metavar="FILE:SYMBOL", help="a function that calls pallas_call")
    climb.add_argument("--args", metavar="TEXT", help="its arguments, e.g. 'f32[256,512], i32[]'")
    climb.add_argument(
        "--reference",
        metavar="FILE:SYMBOL",
        help="a function to compare with, called with NumPy arrays, floats widened to float64; "
        "SYMBOL alone is one of the same file",
    )
    climb.add_argument(
        "--chip",
        action="append",
        metavar="CHIP",
        help="chip for the rungs lower and compile: v5e (default), v6e, v5p, v4, tpu7x, v3, v2, "
        "or all of these; for GPU kernels h100 (their default), b200, a100; may be repeated or a "
        "list with commas",
    )
    climb.add_argument(
        "--rung",
        action="append",
        metavar="RUNG",
        help="trace, interpret, simulate, lower or compile, or 1 to 5; may be repeated or a list "
        "with commas; all of them if not given",
    )
    climb.add_argument("--case", metavar="NAME", help="try only this one of the file's cases")
    climb.add_argument("--seed", type=int, default=0, help="seed of random inputs (default 0)")
    climb.add_argument(
        "--time-limit",
        type=_positive,
        default=None,
        metavar="SECONDS",
        help="for importing the file and for each attempt (default 60)",
    )
    climb.add_argument("--rtol", type=_tolerance, help="relative tolerance")
    climb.add_argument("--atol", type=_tolerance, help="absolute tolerance")
    climb.add_argument(
        "--no-cache", action="store_true", help="compile anew, whatever the disk cache holds"
    )
    _add_form_options(climb)
    doctor = commands.add_parser(
        "doctor", help="say what is installed, which rungs are available, and what is missing"
    )
    doctor.set_defaults(run=_doctor)
    doctor.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_form_options(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON and nothing else")
    form.add_argument("--plain", action="store_true", help="print plain text, also on a terminal")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a tolerance, a number of 0 or more")
    return value


def _climb(options: argparse.Namespace) -> int:
    from pallas_rungs.ladder.files import TIME_LIMIT, climb_file
    from pallas_rungs.ladder.loading import parse_target

    try:
        target = parse_target(options.target)
        result = climb_file(
            target.path,
            target.symbol,
            args=options.args,
            reference=options.reference,
            rungs=rungs_named(options.rung),
            chips=chips_named(options.chip),
            case=options.case,
            time_limit=options.time_limit or TIME_LIMIT,
            seed=options.seed,
            rtol=options.rtol,
            atol=options.atol,
            cache=not options.no_cache,
            on_verdict=None if options.json else _progress(),
        )
    except ValueError as error:  # LoadError, ArgumentError, an unknown chip or rung
        print(f"pallas_rungs climb: {error}", file=sys.stderr)
        return USAGE
    _clear_progress()
    _show(result, options)
    return exit_code_of(verdict for report in result.reports for verdict in report.verdicts)


def exit_code_of(verdicts: Iterable[Verdict]) -> int:
    """Return 0 if all passed, 1 if a rung found fault, 3 if something was left unproved."""
    from pallas_rungs.ladder.status import Status

    unproved = {Status.UNCHECKED, Status.TOOL_CANNOT, Status.UNAVAILABLE}
    statuses = {verdict.status for verdict in verdicts}
    if statuses <= {Status.PASSED}:
        return PASSED
    return NOT_PROVED if statuses <= unproved | {Status.PASSED} else FAULT


def rungs_named(given: Sequence[str] | None) -> tuple[Any, ...]:
    """Return the rungs that were asked for, in the ladder's order; all of them for None.

    Raises:
      ValueError: no such rung, or the chip's, which needs a chip.
    """
    from pallas_rungs.ladder.status import EVERY_RUNG_HERE, Rung

    if not given:
        return EVERY_RUNG_HERE
    wanted = set()
    for word in _words(given):
        rung = next((r for r in Rung if word.lower() in (str(r), str(r.number))), None)
        if rung is None or rung not in EVERY_RUNG_HERE:
            names = ", ".join(f"{r} ({r.number})" for r in EVERY_RUNG_HERE)
            why = "nothing here runs on a chip" if rung else f"there is no rung {word!r}"
            raise ValueError(f"{why}; the rungs are {names}")
        wanted.add(rung)
    return tuple(rung for rung in EVERY_RUNG_HERE if rung in wanted)


def chips_named(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the chips that were asked for, in the order given; None for None.

    Raises:
      ValueError: no such chip.
    """
    from pallas_rungs.compilers.chips import CURRENT_CHIPS, chip_named

    if not given:
        return None
    names: list[str] = []
    for word in _words(given):
        names += CURRENT_CHIPS if word.lower() == "all" else [chip_named(word).name]
    return tuple(dict.fromkeys(names))


def _words(given: Sequence[str]) -> list[str]:
    words = [word.strip() for text in given for word in text.split(",")]
    if not all(words):
        raise ValueError(f"an empty name in {', '.join(given)!r}")
    return words


def _progress() -> Any:
    """What to call with each verdict: a line on the terminal that the next one replaces."""
    if not sys.stderr.isatty():
        return None

    def show(name: str, verdict: Verdict) -> None:
        text = f"{name}: {verdict.label}: {verdict.status}"
        print(f"\r\033[K{text[:78]}", end="", file=sys.stderr, flush=True)

    print("loading the file …", end="", file=sys.stderr, flush=True)
    return show


def _clear_progress() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _near(report: Report) -> Report:
    """The report with files below the current folder named from there."""
    here = Path.cwd()
    verdicts = []
    for verdict in report.verdicts:
        error = verdict.error
        if error is not None and error.frame is not None:
            path = Path(error.frame.file)
            if path.is_relative_to(here):
                frame = replace(error.frame, file=str(path.relative_to(here)))
                verdict = replace(verdict, error=replace(error, frame=frame))
        verdicts.append(verdict)
    return replace(report, verdicts=tuple(verdicts))


def _show(result: FileClimb, options: argparse.Namespace) -> None:
    if options.json:
        code = exit_code_of(v for report in result.reports for v in report.verdicts)
        print(json.dumps({**result.to_json(), "exit_code": code}, indent=2))
        return
    reports = [_near(report) for report in result.reports]
    if sys.stdout.isatty() and not options.plain:
        from rich.console import Console

        console = Console()
        for report in reports:
            console.print(report.rich())
    else:
        print("\n\n".join(map(str, reports)))
    _show_printed(result)


def _show_printed(result: FileClimb) -> None:
    kept = _without_crashes(result.last_lines)
    count = result.printed_lines - (len(result.last_lines) - len(kept))
    if not kept:
        return
    lines = "line" if count == 1 else "lines"
    print(f"\nthe file printed {count} {lines}; the last:", file=sys.stderr)
    for line in kept[-8:]:
        print(f"  | {line[:200]}", file=sys.stderr)


def _without_crashes(lines: Sequence[str]) -> list[str]:
    """The lines without what Python prints when its process crashes; the verdict has that."""
    kept: list[str] = []
    dumped = False
    for line in lines:
        dumped = dumped or line.startswith("Fatal Python error: ")
        if not dumped:
            kept.append(line)
        if line.startswith("Extension modules: "):
            dumped = False
    return kept


def _doctor(options: argparse.Namespace) -> int:
    from pallas_rungs.doctor import diagnose

    diagnosis = diagnose()
    print(json.dumps(diagnosis.to_json(), indent=2) if options.json else diagnosis)
    return diagnosis.exit_code
