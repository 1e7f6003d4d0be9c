"""Lint, format, types and spelling: the same commands as in CONTRIBUTING.md."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = ("code", "tests", "tools", "bench")
# `nd` is CSS, `ather` and `registr` are halves of patterns; `vor` and `VALU` are the compiler's.
IGNORED = "ather,nd,registr,valu,vor"
PROSE = ("book", "README.md", "CONTRIBUTING.md", "STYLE.md", "RUNBOOK.md")


def run(root: Path, *command: str) -> None:
    """Runs a module of this environment; fails with what it printed."""
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout}{ended.stderr}"


def test_lint(root: Path) -> None:
    run(root, "ruff", "check", "--quiet", *CODE)


def test_format(root: Path) -> None:
    run(root, "ruff", "format", "--check", "--quiet", *CODE)


def test_types(root: Path) -> None:
    run(root, "mypy")


def test_types_of_tools(root: Path) -> None:
    run(root, "mypy", "--strict", *map(str, sorted((root / "tools").glob("*.py"))))


def test_spelling(root: Path) -> None:
    run(root, "codespell_lib", "--ignore-words-list", IGNORED, *CODE, *PROSE)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("ruff", "check"), "import os\n"),
        (("ruff", "format", "--check"), "x = {  }\n"),
        (("mypy", "--strict"), "def f(x): return x\n"),
        (("codespell_lib",), "# It was recieved.\n"),  # codespell:ignore recieved
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_checker_sees_a_fault(
    root: Path, tmp_path: Path, command: tuple[str, ...], text: str
) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(text)
    with pytest.raises(AssertionError, match=r"bad\.py"):
        run(root, *command, str(bad))
