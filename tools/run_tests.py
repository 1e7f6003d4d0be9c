"""Runs the tests by pytest: most of them side by side, one process for each core.

Usage: run_tests.py PATH... [PYTEST-OPTION...], with paths from tests/ on or absolute

The tests that build the book and look at its pages come after them, one after the other: a build
has processes of its own. Last come the tests marked `cuda`, with the CUDA compiler of `make cuda`
on their path; nothing before them has it, so that all else is tested as a reader has it. What fails
in one part does not keep the next from being run.

Node, Chromium and the CUDA compiler are needed by some tests. On a person's machine those tests are
skipped or left out, with the line that installs what is missing; with CI=true a missing program
ends the run before it starts, and a skipped test fails it.
"""

import os
import subprocess
import sys
from pathlib import Path

import cuda_extra
from programs import missing

ROOT = Path(__file__).resolve().parent.parent

ONE_BY_ONE = ("tests/book", "tests/browser")
SIDE_BY_SIDE = ("--numprocesses=logical", "--maxprocesses=4", "--dist=worksteal")
CUDA = ("-m", "cuda")
NO_CUDA = ("-m", "not cuda")
NOTHING_COLLECTED = 5


def main() -> int:
    """Returns the first exit status of pytest's that is not 0, or 1 where CI lacks a program."""
    absent = missing()
    with_cuda = cuda_extra.here()
    if sys.platform == "linux" and not with_cuda:
        absent["CUDA compiler"] = "make cuda"
    in_ci = os.environ.get("CI", "").lower() == "true"
    for program, line in absent.items():
        kind = "error" if in_ci else "note"
        print(
            f"{kind}: no {program} found, which some tests need. To install it: {line}",
            file=sys.stderr,
        )
    if absent and in_ci:
        return 1
    paths = [argument for argument in sys.argv[1:] if _is_path(argument)]
    options = [argument for argument in sys.argv[1:] if argument not in (*paths, "--")]
    alone = [path for path in paths if path.rstrip("/") == "tests" or path.startswith(ONE_BY_ONE)]
    others = [path for path in paths if path not in alone]
    parts = [((*SIDE_BY_SIDE, *NO_CUDA), others), (NO_CUDA, alone)]
    if with_cuda:
        parts.append(((*SIDE_BY_SIDE, *CUDA), paths))
    statuses = [_pytest(*how, *options, *which) for how, which in parts if which]
    # An option such as -k may leave nothing of one part.
    telling = [status for status in statuses if status != NOTHING_COLLECTED]
    return next(filter(None, telling), 0) if telling else NOTHING_COLLECTED


def _is_path(argument: str) -> bool:
    return Path(argument).is_absolute() or Path(argument).parts[:1] == ("tests",)


def _pytest(*arguments: str) -> int:
    environment = {
        "JAX_PLATFORMS": "cpu",
        # Every chapter is executed, none read from an earlier build; no verdict either.
        "PALLAS_RUNGS_FRESH": "1",
        "PALLAS_RUNGS_NO_CACHE": "1",
    } | os.environ
    if CUDA[1] in arguments:
        environment["PYTHONPATH"] = str(cuda_extra.FOLDER)
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
