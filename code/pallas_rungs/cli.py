"""The command line: `python -m pallas_rungs climb FILE:SYMBOL`, `estimate FILE:SYMBOL`, `doctor`.

Exit codes of `climb`:
  0  every rung asked for passed;
  1  a rung found fault: wrong, refused, no kernel, deadlocked, timed out, crashed, or the reference
     itself failed;
  2  something could not be tried at all: a usage error, a file that cannot be loaded, a symbol that
     is missing;
  3  nothing was found wrong, but not everything was proved: unchecked (it ran, there was no
     reference to compare with), tool cannot, unavailable;
  130  interrupted.
Those of `estimate`: 0 everything was estimated, 1 the compiler did not compile something, 2 and 130
as above, 3 there is no compiler.

This module imports neither jax nor the reader's file; both live in worker processes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pallas_rungs import __version__
from pallas_rungs.ladder.climb_help import CLIMB_HELP

if TYPE_CHECKING:
    from pallas_rungs.ladder.files import FileClimb
    from pallas_rungs.ladder.loading import Target
    from pallas_rungs.ladder.verdict import Verdict

FAULT, USAGE, INTERRUPTED = 1, 2, 130

_EPILOG = """
climb executes the file, with your rights, in worker processes on this machine. Do not climb a file
that you would not run.

arguments
  --args 'f32[256,512], bf16[512,512]'   a dtype and a shape each; a scalar is i32 or i32[]
  --args 'f32[64,128], i32[8]{0:4}'      a range, the upper end excluded
  --args 'f32[256,256], 128, True'       Python numbers, flags and quoted words pass as they are
  --args 'f32[256,256], scale=0.5'       by name, after those by position
  dtypes: f32 bf16 f16 f64 i8 i16 i32 i64 u8 u16 u32 u64 i4 u4 bool f8_e4m3fn f8_e5m2 ...
  Without --args the file's own cases() or inputs() is used; without --reference its own
  SYMBOL_reference(), reference() or want(), where it has one.
"""

_EPILOG += (
    CLIMB_HELP
    + """
exit code
  0 every rung asked for passed · 1 a rung found fault · 2 a target could not be tried at all ·
  3 nothing found wrong, but not all proved (unchecked, tool cannot, unavailable) · 130 interrupted
"""
)

_ESTIMATE_EPILOG = """
estimate executes the file, with your rights, in worker processes on this machine. Do not estimate
a file that you would not run.

What it prints is an estimate and not a measurement: the compiler's final schedule, executed and
counted. It says how far such estimates have been from measured times on that chip, and what it had
to guess. Integer arguments get the values that --args describes (i32[8]{0:4}); where they decide
which blocks a kernel visits, they decide the estimate.

exit code
  0 everything was estimated · 1 the compiler did not compile something · 2 a target could not be
  tried at all · 3 there is no compiler here · 130 interrupted
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        name = self.prog.removeprefix("python -m ")
        self.exit(USAGE, f"{name}: {message}  (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a program may say what no terminal can show
            stream.reconfigure(errors="backslashreplace")
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
    climb.add_argument(
        "target",
        metavar="FILE:SYMBOL",
        nargs="+",
        help="a function that calls pallas_call; several are climbed two at a time",
    )
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
        "or all, for the first five of these; for GPU kernels h100 (their default), b200, a100; "
        "may be repeated or a list with commas",
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
    climb.add_argument(
        "--watch",
        action="store_true",
        help="climb again whenever a file is saved that the kernel was imported from",
    )
    climb.add_argument(
        "--junit",
        type=Path,
        metavar="FILE",
        help="also write a JUnit report there: a test case for each verdict",
    )
    _add_form_options(climb)
    _add_estimate(commands)
    doctor = commands.add_parser(
        "doctor", help="say what is installed, which rungs are available, and what is missing"
    )
    doctor.set_defaults(run=_doctor)
    doctor.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_estimate(commands: Any) -> None:
    parser = commands.add_parser(
        "estimate",
        help="estimate the time of a function on a TPU, without one (this executes its file)",
        description="Estimate the time of a function on TPUs that are not there, from what their "
        "compiler dumps. This executes the file.",
        epilog=_ESTIMATE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_estimate)
    parser.add_argument("target", metavar="FILE:SYMBOL", help="a function of arrays")
    parser.add_argument("--args", metavar="TEXT", help="its arguments, as for climb")
    parser.add_argument(
        "--chip",
        action="append",
        metavar="CHIP",
        help="v5e (default), v6e, v5p, v4, tpu7x, or all; may be repeated or a list with commas",
    )
    parser.add_argument(
        "--against",
        metavar="FILE:SYMBOL",
        help="another function to estimate on the same arguments, and the ratio of the two; "
        "SYMBOL alone is one of the same file",
    )
    parser.add_argument("--case", metavar="NAME", help="only this one of the file's cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of random inputs (default 0)")
    parser.add_argument(
        "--time-limit",
        type=_positive,
        default=None,
        metavar="SECONDS",
        help="for importing the file and for each estimate (default 120)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def _add_form_options(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON and nothing else")
    form.add_argument("--plain", action="store_true", help="print plain text, also on a terminal")
    form.add_argument(
        "--markdown",
        action="store_true",
        help="print GitHub-flavoured Markdown, for a pull request's comment",
    )


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
    from pallas_rungs.ladder.files import TIME_LIMIT
    from pallas_rungs.ladder.loading import parse_target

    try:
        targets = list(dict.fromkeys(map(parse_target, options.target)))
        given = {
            "args": options.args,
            "reference": options.reference,
            "rungs": rungs_named(options.rung),
            "chips": chips_named(options.chip),
            "case": options.case,
            "time_limit": options.time_limit or TIME_LIMIT,
            "seed": options.seed,
            "rtol": options.rtol,
            "atol": options.atol,
            "cache": not options.no_cache,
        }
        if options.junit is not None:
            _see_that_it_can_be_written(options.junit)
    except ValueError as error:  # LoadError, ArgumentError, an unknown chip or rung
        print(f"pallas_rungs climb: {error}", file=sys.stderr)
        return USAGE
    return _watch(targets, given, options) if options.watch else _once(targets, given, options)[0]


def _estimate(options: argparse.Namespace) -> int:
    from pallas_rungs.ladder.estimating import TIME_LIMIT, estimate_file
    from pallas_rungs.ladder.loading import parse_target

    try:
        target = parse_target(options.target)
        given = {
            "args": options.args,
            "chips": chips_named(options.chip),
            "case": options.case,
            "time_limit": options.time_limit or TIME_LIMIT,
            "seed": options.seed,
        }
        other = None
        if options.against is not None:
            named = options.against
            if ":" not in named:
                named = f"{target.path}:{named}"
            other = parse_target(named, "the other function")
        found = estimate_file(target, **given)
        against = estimate_file(other, **given) if other else []
        if other and len(found) != len(against):
            raise ValueError(
                f"{target.symbol} has {len(found)} estimates and {other.symbol} {len(against)}, "
                "so they are not of the same arguments: give them by --args"
            )
    except ValueError as error:  # LoadError, ArgumentError, an unknown chip
        print(f"pallas_rungs estimate: {error}", file=sys.stderr)
        return USAGE
    from pallas_rungs.ladder import estimate_printing as printing

    if options.json:
        print(printing.as_json(found, against))
    else:
        printing.show(found, against)
    return printing.exit_code([*found, *against])


def _once(
    targets: Sequence[Target], given: dict[str, Any], options: argparse.Namespace
) -> tuple[int, list[FileClimb]]:
    """Climb the targets once, print what came of it, and return the exit code too."""
    from pallas_rungs.ladder import printing
    from pallas_rungs.ladder.batch import climb_several

    quiet = options.json or options.markdown
    climbs = climb_several(targets, on_verdict=None if quiet else _progress(), **given)
    _clear_progress()
    if options.junit is not None:
        from pallas_rungs.ladder.report_junit import junit_xml

        try:
            options.junit.write_text(junit_xml(climbs), encoding="utf-8")
        except OSError as error:
            print(f"pallas_rungs climb: {options.junit}: {error.strerror}", file=sys.stderr)
    if options.json:
        print(printing.as_json(climbs))
    elif options.markdown:
        print(printing.as_markdown(climbs))
    else:
        printing.show(climbs, rich=sys.stdout.isatty() and not options.plain)
    return printing.exit_code(climbs), climbs


def _watch(targets: Sequence[Target], given: dict[str, Any], options: argparse.Namespace) -> int:
    """Climb again whenever a file is saved; Ctrl-C while waiting ends with the last exit code."""
    from pallas_rungs.ladder.watching import stamps, wait_for_change

    watched = {str(target.path) for target in targets}
    while True:
        before = stamps(watched)
        code, climbs = _once(targets, given, options)
        watched |= {file for climb in climbs for file in climb.files}
        before = {**stamps(watched), **before}
        files = "1 file" if len(watched) == 1 else f"{len(watched)} files"
        print(f"\nwatching {files}; Ctrl-C ends", file=sys.stderr, flush=True)
        try:
            found = wait_for_change(before)
        except KeyboardInterrupt:
            print(file=sys.stderr)
            return code
        names = ", ".join(sorted(Path(file).name for file in found))
        print(f"{names} changed", file=sys.stderr, flush=True)


def _see_that_it_can_be_written(path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"--junit names a file to write; {path} is a folder")
    if not path.parent.is_dir():
        raise ValueError(f"--junit: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"--junit: {path} cannot be written")


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


def _doctor(options: argparse.Namespace) -> int:
    from pallas_rungs.doctor import diagnose

    diagnosis = diagnose()
    print(json.dumps(diagnosis.to_json(), indent=2) if options.json else diagnosis)
    return diagnosis.exit_code
