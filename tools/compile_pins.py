"""Compiles requirements.in into requirements.txt: every package, one version, its hashes.

The result holds for each system and each Python from 3.12, and names no package index. Pins that
are there already are kept where they still fit; with --upgrade, each takes its newest version.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

HEADER = """\
# Made from requirements.in by: make pins
# Do not edit: set-up refuses a package whose hash is not here.
"""


def main() -> int:
    """Writes requirements.txt; returns uv's exit status."""
    target = ROOT / "requirements.txt"
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet",
        "--universal", "--python-version", "3.12", "--generate-hashes",
        "--no-header", "--no-emit-index-url", "--no-emit-find-links",
        *sys.argv[1:],
        "requirements.in", "--output-file", "requirements.txt",
    ]  # fmt: skip
    status = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode
    if status == 0:
        text = target.read_text("utf-8").removeprefix(HEADER)
        target.write_text(HEADER + text, "utf-8")
        names = sum(line[:1].isalnum() for line in text.splitlines())
        print(f"requirements.txt: {names} packages")
    return status


if __name__ == "__main__":
    sys.exit(main())
