"""Format the code cells of chapters, so that no line is cut off on a page.

    python tools/format_chapters.py [--check] [FILE ...]

Each cell goes through ``ruff format`` at the width of a page; string literals that are still too
long are split between words, wherever they were split before. Options and drawn cells stay as they
are. With ``--check`` nothing is written, and the exit code is 1 when a chapter would change.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 88
"""Characters of code that a page shows without scrolling."""

CELL = re.compile(
    r"^(?P<fence>`{3,})\{code-cell\}[^\n]*\n(?P<options>(?::[^\n]*\n)*)(?P<body>.*?)^(?P=fence)$",
    re.M | re.S,
)
STRING = re.compile(
    r'^(?P<indent>\s*)(?P<name>(?:\w+=)?)(?P<prefix>[rf]?)"(?P<text>(?:[^"\\]|\\.)*)"(?P<comma>,?)$'
)


def ruff_format(code: str) -> str:
    """Format one cell with ruff at the width of a page.

    Raises:
        ValueError: ruff cannot read the cell.
    """
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", f"--line-length={WIDTH}", "-"],
        input=code,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def join_strings(code: str) -> str:
    """Join string literals that stand alone on lines that follow one another: one sentence.

    After a literal that ends a line of text, the next one stays apart.
    """
    lines: list[str] = []
    before = None
    for line in code.splitlines():
        match = STRING.match(line)
        joins = (
            before is not None
            and match is not None
            and not match["name"]
            and not before["comma"]
            and not before["text"].endswith("\\n")
            and (before["indent"], before["prefix"]) == (match["indent"], match["prefix"])
        )
        if joins and before is not None and match is not None:
            line = f'{lines.pop()[:-1]}{match["text"]}"{match["comma"]}'
            match = STRING.match(line)
        lines.append(line)
        before = match
    return "\n".join(lines) + "\n"


def split_strings(code: str) -> str:
    """Split string literals that stand alone on a line and are too long, between words."""
    lines: list[str] = []
    for line in code.splitlines():
        match = STRING.match(line)
        if len(line) <= WIDTH or match is None or " " not in match["text"]:
            lines.append(line)
            continue
        room = WIDTH - len(match["indent"]) - len(match["name"]) - len(match["prefix"]) - 3
        pieces = [""]
        for word in re.findall(r"\S*\s*", match["text"]):
            if pieces[-1] and len(pieces[-1]) + len(word.rstrip()) > room:
                pieces.append("")
            pieces[-1] += word
        quoted = [f'{match["prefix"]}"{piece}"' for piece in pieces if piece]
        quoted[0], quoted[-1] = match["name"] + quoted[0], quoted[-1] + match["comma"]
        lines += [match["indent"] + piece for piece in quoted]
    return "\n".join(lines) + "\n"


def format_chapter(text: str) -> str:
    """Return a chapter with its cells formatted.

    Raises:
        ValueError: a cell does not parse; says what ruff said.
    """

    def formatted(match: re.Match[str]) -> str:
        body = match["body"]
        if not body.strip():
            return match[0]
        new = split_strings(ruff_format(join_strings(body))).strip("\n")
        return match[0].replace(body, new + "\n")

    return CELL.sub(formatted, text)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file differs")
    options = parser.parse_args()
    files = options.files or sorted((ROOT / "book").rglob("*.md"))
    changed = False
    for file in files:
        text = file.read_text("utf8")
        try:
            new = format_chapter(text)
        except ValueError as error:
            print(f"{file}: a cell does not parse: {error}", file=sys.stderr)
            return 2
        if new != text:
            changed = True
            print(f"{'would change' if options.check else 'formatted'} {file}")
            if not options.check:
                file.write_text(new, "utf8")
    return int(changed and options.check)


if __name__ == "__main__":
    sys.exit(main())
