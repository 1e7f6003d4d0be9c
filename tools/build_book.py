"""Builds the site: the exhibits' script first, when Node is here, then the book itself.

Warnings and unresolved references fail the build (-W, -n); --keep-going lists them all. The
chapters are executed by the Sphinx extension, which prints a line for each.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from programs import find_node, install_line

ROOT = Path(__file__).resolve().parent.parent


def environment() -> dict[str, str]:
    """Returns the environment of a build: no accelerator, no colour codes in captured text."""
    return {"JAX_PLATFORMS": "cpu", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"} | os.environ


def bundle_exhibits() -> int:
    """Makes the exhibits' script; without Node the pages keep their static pictures."""
    if find_node() is None:
        print(
            "exhibits: not bundled, no Node 20 or later found; pages show their static pictures. "
            f"To install it: {install_line('node')}",
            flush=True,
        )
        return 0
    command = [sys.executable, "-m", "pallas_rungs.exhibits.bundle"]
    return subprocess.run(command, cwd=ROOT, env=environment()).returncode


def build_pages() -> int:
    """Runs Jupyter Book on the root folder; the site lands in _build/html."""
    command = [
        str(Path(sys.executable).parent / "jupyter-book"),
        "build", "-W", "-n", "--keep-going",
        "--toc", str(ROOT / "_toc.yml"),
        "--config", str(ROOT / "_config.yml"),
        str(ROOT),
    ]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, env=environment()).returncode


def main() -> int:
    """Builds everything; returns the first exit status that is not zero."""
    start = time.monotonic()
    status = bundle_exhibits() or build_pages()
    if status == 0:
        print(f"built in {time.monotonic() - start:.0f} s: {ROOT / '_build/html/index.html'}")
    else:
        print("error: the book did not build; the cause is above", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
