"""Passages of the part Production are found in a reformatted copy of the file, and are the same."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from myst_parser.parsers.directives import parse_directive_text

from pallas_rungs.book.excerpts import ExcerptDirective, parse_notes, passages_on
from pallas_rungs.walk import ExcerptError, Note, Passage
from pallas_rungs.walk.located import OpenModule, open_module

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "book" / "production").glob("*.md"))
WIDTHS = (70, 88, 120)


def excerpts(text: str) -> Iterator[tuple[str, Passage, list[Note]]]:
    passages = iter(passages_on(text))
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "fence" and token.info.startswith("{excerpt} "):
            read = parse_directive_text(
                ExcerptDirective, token.info.partition(" ")[2], token.content
            )
            found = next(passages)
            yield found.module, found.passage, parse_notes(read.body)


@cache
def opened(module: str, width: int = 0) -> OpenModule:
    """Opens an installed module, or a copy with other lines, indentation and quotes."""
    found = open_module(module)
    if not width:
        return found
    ruff = Path(sys.executable).parent / "ruff"
    source = subprocess.run(
        [ruff, "format", "--isolated", f"--line-length={width}", "--stdin-filename=a.py", "-"],
        input=found.origin.source,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert source != found.origin.source
    return OpenModule(replace(found.origin, source=source), ast.parse(source))


def words(module: OpenModule, passage: Passage) -> str:
    """The code of a passage without what a formatter changes."""
    span = module.locate(passage).span
    lines = module.origin.source.splitlines()[span.first - 1 : span.last]
    return re.sub(r"[\s,()\"'\\]+", "", "".join(re.sub(r"\s#.*", "", line) for line in lines))


def lost(text: str, width: int) -> list[str]:
    """What of a page's excerpts is not found in reformatted copies, or is something else there."""
    found = []
    for module, passage, notes in excerpts(text):
        try:
            before = words(opened(module), passage)
        except ExcerptError as error:
            if hasattr(error, "extra"):
                pytest.skip(str(error))
            raise
        copy = opened(module, width)
        try:
            located = copy.locate(passage)
            for note in notes:
                copy.anchor(note.anchor, "note", located.span, located.symbol)
        except ExcerptError as error:
            found.append(str(error))
            continue
        # A passage ends with the line of its anchor, so a longer line may hold a little more.
        after = words(copy, passage)
        if not (before.startswith(after) or after.startswith(before)):
            found.append(f"{passage}: another passage")
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_passages_survive_reformatting(page: Path, width: int) -> None:
    assert lost(page.read_text("utf-8"), width) == []


def test_an_anchor_that_a_formatter_breaks_is_seen() -> None:
    page = """\
```{excerpt} jax._src.pallas.pallas_call:pallas_call
:start: "cost_estimate: CostEstimate | None = None,"
- algorithm "compiler_params: ( Mapping[ Backend,": broken where the formatter joins lines.
```
"""
    assert any("note anchor" in line or "start anchor" in line for line in lost(page, 120))
