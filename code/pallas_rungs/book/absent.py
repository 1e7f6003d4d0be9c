"""A chapter whose optional extra is not here: shown whole, not executed, and marked so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pallas_rungs import extras
from pallas_rungs.book.notebooks import Chapter
from pallas_rungs.claims import MIME, RUNGS, unproved


def absent_extra(chapter: Chapter) -> str:
    """Return the first of a chapter's extras that is not here; empty when it has what it needs."""
    return next((name for name in chapter.extras if extras.why_missing(name)), "")


def outputs_without(chapter: Chapter, extra: str) -> list[list[dict[str, Any]]]:
    """Return what stands in place of outputs: under each cell a note, and its claims, unchecked.

    Args:
        chapter: The chapter; nothing of it is executed.
        extra: The extra that is not here.
    """
    remark = f"not checked in this build: {extra} is not installed here"
    found = []
    for cell in chapter.cells:
        outputs = [_note(extra)]
        for text, rung in _claims_in(chapter.source(cell)):
            record, html = unproved(text, rung, remark)
            outputs.append(_output({MIME: record, "text/html": html, "text/plain": text}))
        found.append(outputs)
    return found


def _note(extra: str) -> dict[str, Any]:
    how = extras.INSTALLED_BY[extra]
    said = f"Not executed in this build, where {extra} is not installed. To install it: "
    html = f'<p class="pr-absent"><em>{said}<code>{how}</code></em></p>'
    return _output({"text/html": html, "text/plain": said + how})


def _output(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _claims_in(source: str) -> Iterator[tuple[str, str]]:
    """Find the claims that a cell writes out; one whose sentence is computed is not known."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        match call:
            case ast.Call(
                func=ast.Name(id="claim"), args=[ast.Constant(value=str(text))], keywords=words
            ):
                for word in words:
                    if word.arg == "rung" and isinstance(word.value, ast.Constant):
                        rung = word.value.value
                        if rung in RUNGS:
                            yield text, str(rung)
