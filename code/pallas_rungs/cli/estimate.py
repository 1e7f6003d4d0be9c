"""The command `estimate`: the time of a reader's function on chips that are not there."""

from __future__ import annotations

import argparse
import sys
from typing import Any

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
)

_EPILOG = f"""{EXECUTES.format(command="estimate")}
What it prints is an estimate and not a measurement: the compiler's final schedule, executed and
counted. It says how far such estimates have been from measured times on that chip, what it had to
guess, and how many bytes of arguments are fetched before the program starts and not counted.
Integer arguments get the values that --args describes (i32[8]{{0:4}}); where they decide which
blocks a kernel visits, they decide the estimate.

json
  {{"estimates": [ESTIMATE, ...], "exit_code": INT}}, one for each case and chip; and error, where a
  target could not be tried
  ESTIMATE  kind "estimate", name, arguments, chip, seconds, low, high, error (how far off such
            estimates were), cycles, hbm_read_bytes, hbm_written_bytes, kernels, unresolved (what
            was guessed), versions, method, prefetched_bytes (of arguments that are fetched before
            the program starts), constants; where there is none, name, chip, kind (why: refused,
            crashed, timed out, deadlocked, unavailable) and error. With --against also against,
            which is another ESTIMATE, and ratio.
  A usage error, found before anything is executed, is a line on the error output and no JSON.

exit code
  0 everything was estimated · 1 the compiler did not compile something · 2 a target could not be
  tried at all · 3 there is no compiler here · 130 interrupted (what was estimated until then is
  printed)
"""


def add(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "estimate",
        help="estimate the time of a function on a TPU, without one (this executes its file)",
        description="Estimate the time of a function on TPUs that are not there, from what their "
        "compiler dumps. This executes the file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_estimate)
    parser.add_argument("target", metavar="FILE:SYMBOL", help="a function of arrays")
    add_inputs(parser, time_limit=120, each="estimate")
    add_chips(parser, ESTIMATED_CHIPS)
    add_against(parser)
    add_json(parser)


def _estimate(options: argparse.Namespace) -> int:
    from pallas_rungs.ladder import estimate_printing as printing
    from pallas_rungs.ladder.arguments import ArgumentError
    from pallas_rungs.ladder.estimating import (
        TIME_LIMIT,
        FileEstimatesInterrupted,
        estimate_files,
    )
    from pallas_rungs.ladder.loading import LoadError, parse_target

    interrupted = False
    try:
        target = parse_target(options.target)
        other = None
        if options.against is not None:
            other = parse_target(beside(options.against, target), "the other function")
        chips = estimated_chips_named(options.chip)
        try:
            found, against = estimate_files(
                target,
                other,
                args=options.args,
                chips=chips,
                case=options.case,
                time_limit=options.time_limit or TIME_LIMIT,
                seed=options.seed,
            )
        except FileEstimatesInterrupted as stopped:
            found, against, interrupted = stopped.found, stopped.against, True
        except LoadError as error:
            if options.json and not isinstance(error, ArgumentError):
                print(no_json_but("estimates", str(error)))
            raise
    except ValueError as error:  # LoadError, ArgumentError, an unknown chip
        print(f"pallas_rungs estimate: {error}", file=sys.stderr)
        return USAGE
    code = INTERRUPTED if interrupted else printing.exit_code([*found, *against])
    if options.json:
        print(printing.as_json(found, against, code))
    else:
        printing.show(found, against)
    if interrupted:
        print("interrupted", file=sys.stderr)
    return code
