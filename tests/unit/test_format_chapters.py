"""Cells of chapters are formatted for the width of a page."""

import subprocess
import sys
from pathlib import Path

import pytest
from format_chapters import WIDTH, format_chapter

CHAPTER = """\
# Title

```{code-cell} python
:tags: [hide-input]
%s
```

```{code-cell} python
:source: kernels/add.py:add_kernel
```
"""


def test_the_chapters_are_formatted(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, root / "tools/format_chapters.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cell_is_formatted_and_its_options_and_drawn_cells_stay() -> None:
    assert format_chapter(CHAPTER % "x = { 'a':1 }") == CHAPTER % 'x = {"a": 1}'


def test_a_long_sentence_is_split_between_words() -> None:
    sentence = "word " * 40 + "end."
    text = format_chapter(CHAPTER % f'claim("{sentence}", rung="trace")')
    assert all(len(line) <= WIDTH for line in text.splitlines())
    cell = text.split("[hide-input]\n")[1].split("\n```")[0]
    said: list[str] = []
    exec(cell, {"claim": lambda words, rung: said.append(words)})
    assert said == [sentence]


def test_a_sentence_in_fragments_is_split_anew() -> None:
    fragments = [f"{'word ' * 14}", "and ", f"{'word ' * 14}", "end."]
    text = format_chapter(
        CHAPTER % ("claim(\n    " + "\n    ".join(f'"{f}"' for f in fragments) + "\n)")
    )
    cell = text.split("[hide-input]\n")[1].split("\n```")[0]
    pieces = [line.strip()[1:-1] for line in cell.splitlines()[1:-1]]
    assert "".join(pieces) == "".join(fragments)
    assert len(pieces) == 2
    assert max(map(len, pieces)) <= WIDTH
    lines = f'print(\n    "{"one " * 12}\\n"\n    "{"two " * 12}"\n)'
    assert lines in format_chapter(CHAPTER % lines)
    two = f'f(\n    "{"one " * 12}",\n    "{"two " * 12}",\n)'
    assert two in format_chapter(CHAPTER % two)


def test_formatting_twice_changes_nothing() -> None:
    once = format_chapter(CHAPTER % f'f(alt="{"a b " * 50}")')
    assert format_chapter(once) == once


def test_a_cell_that_does_not_parse_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"(?i)expected|parse"):
        format_chapter(CHAPTER % "x = (")
