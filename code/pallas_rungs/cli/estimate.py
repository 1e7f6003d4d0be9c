"""The command `estimate`: the time of a reader's function on chips that are not there."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pallas_rungs.cli.options import (
    ESTIMATED_CHIPS,
    EXECUTES,
    USAGE,
    add_against,
    add_chips,
    add_inputs,
    add_json,
    beside,
    estimated_chips_named,
)

_EPILOG = f"""{EXECUTES.format(command="estimate")}
What it prints is an estimate and not a measurement: the compiler's final schedule, executed and
counted. It says how far such estimates have been from measured times on that chip, what it had to
guess, and how many bytes of arguments are fetched before the program starts and not counted.
Integer arguments get the values that --args describes (i32[8]{{0:4}}); where they decide which
blocks a kernel visits, they decide the estimate.

exit code
  0 everything was estimated · 1 the compiler did not compile something · 2 a target could not be
  tried at all · 3 there is no compiler here · 130 interrupted
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
    from pallas_rungs.ladder.estimating import TIME_LIMIT, estimate_file
    from pallas_rungs.ladder.loading import parse_target

    try:
        target = parse_target(options.target)
        given = {
            "args": options.args,
            "chips": estimated_chips_named(options.chip),
            "case": options.case,
            "time_limit": options.time_limit or TIME_LIMIT,
            "seed": options.seed,
        }
        other = None
        if options.against is not None:
            other = parse_target(beside(options.against, target), "the other function")
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
