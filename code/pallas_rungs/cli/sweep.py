"""The command `sweep`: a reader's function with many tiles, on chips that are not there."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from pallas_rungs.cli.options import (
    ESTIMATED_CHIPS,
    EXECUTES,
    INTERRUPTED,
    USAGE,
    add_against,
    add_chips,
    add_inputs,
    add_json,
    beside,
    estimated_chips_named,
    no_json_but,
    show_progress,
)

if TYPE_CHECKING:
    from pallas_rungs.performance import Trial

_EPILOG = f"""{EXECUTES.format(command="sweep")}
configurations
  --over bm=128,256,512                     the values of one argument, Python numbers and words
  --over bm=128,256 --over bn=128,256       every value with every other one
  --over 'block=(128,128,128),(256,512,256)'  tuples of values in parentheses,
  --over 'block=128,128,128; 256,512,256'     or with semicolons between them

Each configuration is an estimate and not a measurement; see the help of `estimate`. One that the
kernel or the compiler refuses is a result as well, and stands in the table with its reason.

json
  {{"sweeps": [SWEEP, ...], "exit_code": INT}}, one for each case and chip; and error, where a
  target could not be tried
  SWEEP     kind "sweep of estimates", name, chip, arguments, best (the place of the best trial, or
            null), trials, against (a TRIAL, or null), versions, method
  TRIAL     configuration, and estimate (see the help of `estimate`) or kind, error_type, message,
            memory: why there is none; with --against also ratio
  A usage error, found before anything is executed, is a line on the error output and no JSON.

exit code
  0 each sweep has a best configuration · 1 one has none, or nothing to be held against · 2 a target
  could not be tried at all · 3 there is no compiler here · 130 interrupted (what was
  estimated until then is printed)
"""


def add(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "sweep",
        help="estimate a function's time with many tiles (this executes its file)",
        description="Estimate the time of a function on TPUs that are not there, for each of many "
        "values of its arguments. This executes the file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_sweep)
    parser.add_argument("target", metavar="FILE:SYMBOL", help="a function of arrays")
    parser.add_argument(
        "--over",
        metavar="NAME=VALUES",
        action="append",
        required=True,
        help="an argument by name and the values to try; may be repeated",
    )
    add_inputs(parser, time_limit=120, each="estimate")
    add_chips(parser, ESTIMATED_CHIPS)
    add_against(parser)
    parser.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        help="how many work at the same time (default: as many as there are cores)",
    )
    add_json(parser)


def _count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers, 1 or more")
    return int(text)


def _sweep(options: argparse.Namespace) -> int:
    from pallas_rungs.ladder.arguments import ArgumentError, parse_over
    from pallas_rungs.ladder.estimating import TIME_LIMIT
    from pallas_rungs.ladder.loading import LoadError, parse_target
    from pallas_rungs.ladder.sweeping import FileSweepInterrupted, sweep_file

    interrupted = False
    try:
        target = parse_target(options.target)
        other = None
        if options.against is not None:
            other = parse_target(beside(options.against, target), "the other function")
        over = parse_over(options.over)
        show_progress("loading the file …")
        try:
            found = sweep_file(
                target,
                over=over,
                args=options.args,
                chips=estimated_chips_named(options.chip),
                against=other,
                case=options.case,
                time_limit=options.time_limit or TIME_LIMIT,
                seed=options.seed,
                workers=options.workers,
                progress=_show,
            )
        except FileSweepInterrupted as stopped:
            found, interrupted = stopped.sweeps, True
        except LoadError as error:
            if options.json and not isinstance(error, ArgumentError):
                print(no_json_but("sweeps", str(error)))
            raise
        finally:
            show_progress("")
    except ValueError as error:  # LoadError, ArgumentError, an unknown chip
        print(f"pallas_rungs sweep: {error}", file=sys.stderr)
        return USAGE
    from pallas_rungs.ladder import sweep_printing as printing

    code = INTERRUPTED if interrupted else printing.exit_code(found)
    if options.json:
        print(printing.as_json(found, code))
    else:
        printing.show(found)
    if interrupted:
        print("interrupted", file=sys.stderr)
    return code


def _show(chip: str, trial: Trial, done: int, of: int) -> None:
    from pallas_rungs.performance.report import in_time

    said = f"estimate {in_time(trial.seconds)}" if trial.estimate else trial.why
    show_progress(f"{done} of {of}: {chip}, {trial.label}: {said}")
