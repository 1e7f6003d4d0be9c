"""Compiles each requirements*.in into its .txt: every package, one version, its hashes.

The result holds for each system and each Python from 3.12, and names no package index. Pins that
are there already are kept where they still fit; with --upgrade, each takes its newest version.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

HEADER = """\
# Made from {source} by: make pins
# Do not edit: set-up refuses a package whose hash is not here.
"""
FILES = {
    "requirements.in": (),
    "requirements-cuda.in": (),
    "requirements-tokamax.in": ("--no-deps",),
}


def compiled(source: str, *options: str) -> int:
    """Writes the pins of one file of names; returns uv's exit status."""
    target = ROOT / Path(source).with_suffix(".txt")
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet",
        "--universal", "--python-version", "3.12", "--generate-hashes",
        "--no-header", "--no-emit-index-url", "--no-emit-find-links",
        *options,
        source, "--output-file", target.name,
    ]  # fmt: skip
    status = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode
    if status == 0:
        header = HEADER.format(source=source)
        text = target.read_text("utf-8").removeprefix(header)
        target.write_text(header + text, "utf-8")
        names = sum(line[:1].isalnum() for line in text.splitlines())
        print(f"{target.name}: {names} packages")
    return status


def main() -> int:
    """Writes the files of pins; returns the first exit status of uv's that is not 0."""
    return next(
        filter(None, (compiled(name, *how, *sys.argv[1:]) for name, how in FILES.items())), 0
    )


if __name__ == "__main__":
    sys.exit(main())
