"""Runs the tests by pytest, with one closing line for all of them.

Usage: run_tests.py PATH... [-- PYTEST-OPTION...]

Node and Chromium are needed by some tests. On a person's machine those tests are skipped with the
line that installs what is missing; with CI=true a missing program ends the run before it starts,
and a skipped test fails it.
"""

import os
import subprocess
import sys
from pathlib import Path

from programs import missing

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Returns pytest's exit status, or 1 where CI lacks a program."""
    absent = missing()
    in_ci = os.environ.get("CI", "").lower() == "true"
    for program, line in absent.items():
        kind = "error" if in_ci else "note"
        print(
            f"{kind}: no {program} found, which some tests need. To install it: {line}",
            file=sys.stderr,
        )
    if absent and in_ci:
        return 1
    environment = {
        "JAX_PLATFORMS": "cpu",
        # Every chapter is executed, none read from what an earlier build left; no verdict either.
        "PALLAS_RUNGS_FRESH": "1",
        "PALLAS_RUNGS_NO_CACHE": "1",
    } | os.environ
    command = [sys.executable, "-m", "pytest", *(part for part in sys.argv[1:] if part != "--")]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
