"""The command line: `python -m pallas_rungs climb FILE:SYMBOL`, `estimate`, `sweep`, `doctor`.

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
as above, 3 there is no compiler. Those of `sweep` are the same, but that a configuration which does
not compile is a result: 0 each sweep has a best configuration, 1 one has none.

This package imports neither jax nor the reader's file; both live in worker processes.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pallas_rungs import __version__
from pallas_rungs.cli import climb, estimate, sweep
from pallas_rungs.cli.options import INTERRUPTED, USAGE, add_json, chips_named, rungs_named

__all__ = ["chips_named", "main", "rungs_named"]

FAULT = 1

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a stream says that takes no more."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        name = self.prog.removeprefix("python -m ")
        self.exit(USAGE, f"{name}: {message}  (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was started with that stream closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a program may say what no terminal can show
            stream.reconfigure(errors="backslashreplace")
    try:
        Path.cwd()
    except FileNotFoundError:
        print(
            "pallas_rungs: the folder that this was started in is no longer there; "
            "change into one that is",
            file=sys.stderr,
        )
        return USAGE
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
        _write_no_more()
        return FAULT
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        _write_no_more()
        print(f"pallas_rungs: the output could not be written: {error.strerror}", file=sys.stderr)
        return FAULT


def _write_no_more() -> None:
    """Turn the output away from where it cannot go, so that leaving does not try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m pallas_rungs",
        description="Try a Pallas kernel on every rung that needs no chip.",
    )
    parser.add_argument("--version", action="version", version=f"pallas-rungs {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    climb.add(commands)
    estimate.add(commands)
    sweep.add(commands)
    doctor = commands.add_parser(
        "doctor", help="say what is installed, which rungs are available, and what is missing"
    )
    doctor.set_defaults(run=_doctor)
    add_json(doctor)
    return parser


def _doctor(options: argparse.Namespace) -> int:
    from pallas_rungs.doctor import diagnose

    diagnosis = diagnose()
    print(json.dumps(diagnosis.to_json(), indent=2) if options.json else diagnosis)
    return diagnosis.exit_code
