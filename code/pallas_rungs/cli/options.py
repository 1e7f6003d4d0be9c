"""What several commands ask for: options written once, and what is read from their words."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

USAGE = 2
"""Exit code of a usage error, and of a target that cannot be tried at all."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

EXECUTES = """
{command} executes the file, with your rights, in worker processes on this machine. Do not {command}
a file that you would not run.
"""

ARGUMENTS = """
arguments
  --args 'f32[256,512], bf16[512,512]'   a dtype and a shape each; a scalar is i32 or i32[]
  --args 'f32[64,128], i32[8]{0:4}'      a range, the upper end excluded
  --args 'f32[256,256], 128, True'       Python numbers, flags and quoted words pass as they are
  --args 'f32[256,256], scale=0.5'       by name, after those by position
  dtypes: f32 bf16 f16 f64 i8 i16 i32 i64 u8 u16 u32 u64 i4 u4 bool f8_e4m3fn f8_e5m2 ...
"""


def add_inputs(parser: argparse.ArgumentParser, *, time_limit: float, each: str) -> None:
    """Add what every command that executes a file asks for: arguments, case, seed, time limit.

    Args:
      parser: of the command.
      time_limit: the command's default in seconds, which the help names.
      each: what the limit holds for, beside importing the file: "attempt", "estimate".
    """
    parser.add_argument("--args", metavar="TEXT", help="its arguments, e.g. 'f32[256,512], i32[]'")
    parser.add_argument("--case", metavar="NAME", help="try only this one of the file's cases")
    parser.add_argument("--seed", type=seed, default=0, help="seed of random inputs (default 0)")
    parser.add_argument(
        "--time-limit",
        type=positive,
        default=None,
        metavar="SECONDS",
        help=f"for importing the file and for each {each} (default {time_limit:g})",
    )


def add_chips(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the option that names chips, with a help text that says which there are."""
    parser.add_argument(
        "--chip",
        action="append",
        metavar="CHIP",
        help=f"{text}; may be repeated or a list with commas",
    )


ESTIMATED_CHIPS = "v5e (default), v6e, v5p, v4, tpu7x, or all"
"""The chips that a time can be estimated for, as a help text says it."""


def add_against(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a function to hold estimates against."""
    parser.add_argument(
        "--against",
        metavar="FILE:SYMBOL",
        help="another function to estimate on the same arguments, and the ratio of the two; "
        "SYMBOL alone is one of the same file",
    )


def beside(named: str, target: object) -> str:
    """Return FILE:SYMBOL of another function: SYMBOL alone is one of the target's file."""
    file = str(target).rpartition(":")[0]
    return named if ":" in named else f"{file}:{named}"


def add_json(parser: Any) -> None:
    """Add the option that has JSON printed."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def no_json_but(entries: str, error: str) -> str:
    """Return the JSON of a command that could not try its target: no entries, and why.

    Args:
      entries: name of the list that it would have printed.
      error: why there is nothing in it.
    """
    return json.dumps({entries: [], "error": error, "exit_code": USAGE}, indent=2)


def seed(text: str) -> int:
    """Read the seed of random inputs, a whole number of 0 or more."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed, a whole number of 0 or more")
    return int(text)


def positive(text: str) -> float:
    """Read a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def tolerance(text: str) -> float:
    """Read a tolerance, a number of 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a tolerance, a number of 0 or more")
    return value


def rungs_named(given: Sequence[str] | None) -> tuple[Any, ...]:
    """Return the rungs that were asked for, in the ladder's order; all of them for None.

    Raises:
      ValueError: no such rung, or the chip's, which needs a chip.
    """
    from pallas_rungs.ladder.status import EVERY_RUNG_HERE, Rung

    if not given:
        return EVERY_RUNG_HERE
    wanted = set()
    for word in words(given):
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
    for word in words(given):
        names += CURRENT_CHIPS if word.lower() == "all" else [chip_named(word).name]
    return tuple(dict.fromkeys(names))


def estimated_chips_named(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the chips that were asked for and can be estimated, in the order given; None for None.

    Raises:
      ValueError: no such chip, or one whose constants are not known; the message lists those that
        can be estimated.
    """
    from pallas_rungs.compilers.chips import CURRENT_CHIPS
    from pallas_rungs.performance.clock import clock_of

    if not given:
        return None
    names: list[str] = []
    for word in words(given):
        names += CURRENT_CHIPS if word.lower() == "all" else [clock_of(word).chip]
    return tuple(dict.fromkeys(names))


def words(given: Sequence[str]) -> list[str]:
    """Split lists with commas.

    Raises:
      ValueError: there is an empty name.
    """
    found = [word.strip() for text in given for word in text.split(",")]
    if not all(found):
        raise ValueError(f"an empty name in {', '.join(given)!r}")
    return found


def show_progress(text: str) -> None:
    """Write a line on the terminal that the next one replaces; empty takes it away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:78]}", end="", file=sys.stderr, flush=True)
