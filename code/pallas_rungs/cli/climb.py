"""The command `climb`: a reader's kernel on every rung that needs no chip."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_rungs.cli.options import (
    ARGUMENTS,
    EXECUTES,
    USAGE,
    add_chips,
    add_inputs,
    add_json,
    chips_named,
    rungs_named,
    show_progress,
    tolerance,
)
from pallas_rungs.ladder.climb_help import CLIMB_HELP

if TYPE_CHECKING:
    from pallas_rungs.ladder.files import FileClimb
    from pallas_rungs.ladder.loading import Target
    from pallas_rungs.ladder.verdict import Verdict

_EPILOG = f"""{EXECUTES.format(command="climb")}{ARGUMENTS.rstrip()}
  Without --args the file's own cases() or inputs() is used; without --reference its own
  SYMBOL_reference(), reference() or want(), where it has one.
{CLIMB_HELP}
exit code
  0 every rung asked for passed · 1 a rung found fault · 2 a target could not be tried at all ·
  3 nothing found wrong, but not all proved (unchecked, tool cannot, unavailable) · 130 interrupted
"""


def add(commands: Any) -> None:
    """Add the command to the parser's commands."""
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
    climb.add_argument(
        "--reference",
        metavar="FILE:SYMBOL",
        help="a function to compare with, called with NumPy arrays, floats widened to float64; "
        "SYMBOL alone is one of the same file",
    )
    add_inputs(climb, time_limit=60, each="attempt")
    add_chips(
        climb,
        "chip for the rungs lower and compile: v5e (default), v6e, v5p, v4, tpu7x, v3, v2, "
        "or all, for the first five of these; for GPU kernels h100 (their default), b200, a100",
    )
    climb.add_argument(
        "--rung",
        action="append",
        metavar="RUNG",
        help="trace, interpret, simulate, lower or compile, or 1 to 5; may be repeated or a list "
        "with commas; all of them if not given",
    )
    climb.add_argument("--rtol", type=tolerance, help="relative tolerance")
    climb.add_argument("--atol", type=tolerance, help="absolute tolerance")
    climb.add_argument(
        "--no-cache", action="store_true", help="compile anew, whatever the disk cache holds"
    )
    climb.add_argument(
        "--no-estimate",
        action="store_true",
        help="estimate no time beside the rung compile; it does for TPUs, and changes no verdict",
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
    form = climb.add_mutually_exclusive_group()
    add_json(form)
    form.add_argument("--plain", action="store_true", help="print plain text, also on a terminal")
    form.add_argument(
        "--markdown",
        action="store_true",
        help="print GitHub-flavoured Markdown, for a pull request's comment",
    )


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
            "estimates": not options.no_estimate,
        }
        if options.junit is not None:
            _see_that_it_can_be_written(options.junit)
    except ValueError as error:  # LoadError, ArgumentError, an unknown chip or rung
        print(f"pallas_rungs climb: {error}", file=sys.stderr)
        return USAGE
    return _watch(targets, given, options) if options.watch else _once(targets, given, options)[0]


def _once(
    targets: Sequence[Target], given: dict[str, Any], options: argparse.Namespace
) -> tuple[int, list[FileClimb]]:
    """Climb the targets once, print what came of it, and return the exit code too."""
    from pallas_rungs.ladder import printing
    from pallas_rungs.ladder.batch import climb_several

    quiet = options.json or options.markdown
    climbs = climb_several(targets, on_verdict=None if quiet else _progress(), **given)
    show_progress("")
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


def _progress() -> Any:
    """What to call with each verdict: a line on the terminal that the next one replaces."""
    if not sys.stderr.isatty():
        return None

    def show(name: str, verdict: Verdict) -> None:
        show_progress(f"{name}: {verdict.label}: {verdict.status}")

    show_progress("loading the file …")
    return show
