"""Tables of computed values, as accessible HTML with a plain-text twin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt

from pallas_rungs.figures.glyphs import STATUSES, check_status, glyph
from pallas_rungs.figures.svg import el
from pallas_rungs.figures.theme import stylesheet
from pallas_rungs.performance.provenance import MIME

CONSTANTS: Final = "constants"
"""The kind that marks constants of chips in an output, beside estimates and measurements."""

_INLINE = MarkdownIt("commonmark", {"html": False})
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_END_OF_WORD = re.compile(r"(?<=\w)(?:[._|]|, ?)(?=\w)")
"""Where a name may be broken into two lines."""

_CSS = (
    ".pr-figure .pr-scroll{overflow-x:auto}"
    ".pr-figure table{border-collapse:collapse;font:400 .95rem/1.4 var(--f-sans);margin:0}"
    ".pr-figure :is(th,td){padding:.4rem .8rem;text-align:left;vertical-align:top;border:0;"
    "border-bottom:1px solid var(--f-line)}"
    ".pr-figure :is(th,td) code{overflow-wrap:normal;word-break:normal}"
    ".pr-figure thead th{border-bottom:2px solid var(--f-strong);vertical-align:bottom}"
    ".pr-figure .pr-status{display:inline-flex;align-items:center;gap:.35rem;white-space:nowrap}"
    ".pr-figure .pr-status svg{flex:none}"
    ".pr-figure .pr-matrix :is(th,td):not(:first-child){text-align:center;padding:.4rem .3rem}"
    ".pr-figure .pr-matrix tbody th{font-weight:400;min-width:8rem}"
    ".pr-figure .pr-matrix .pr-status{flex-direction:column;gap:.05rem;font-size:.8em;"
    "line-height:1.15;white-space:normal;color:var(--f-muted)}"
    ".pr-figure .pr-matrix td.pr-caught{background:var(--f-bad-bg)}"
    ".pr-figure .pr-matrix td.pr-caught .pr-status{color:var(--f-bad);font-weight:600}"
    "@container(max-width:36rem){.pr-figure .pr-matrix thead th:not(:first-child){"
    "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:.3rem .1rem}"
    ".pr-figure .pr-matrix tbody th{min-width:5.5rem;padding:.4rem .4rem .4rem 0}"
    ".pr-figure .pr-matrix td:not(:first-child){padding:.4rem .1rem}"
    ".pr-figure .pr-matrix .pr-status{font-size:.68em}}"
)


@dataclass(frozen=True)
class Table:
    """A table that a notebook cell shows.

    Attributes:
        markup: the `table` element.
        plain: the same as text.
        label: its name for readers who hear the page.
        source: where constants of chips in it come from; empty where it holds none.
    """

    markup: str
    plain: str
    label: str
    source: str = ""

    def __repr__(self) -> str:
        return f"{self.plain}\n{self._told}" if self.source else self.plain

    @property
    def _told(self) -> str:
        return f"Constants of chips, not measured here: {self.source}."

    def _repr_html_(self) -> str:
        style = stylesheet(self.markup + _CSS) + _CSS
        return (
            f'<div class="pr-figure"><style>{style}</style><div class="pr-scroll" role="region" '
            f'tabindex="0" aria-label="{escape(self.label)}">{self.markup}</div></div>'
            + (
                f'<p class="pr-provenance"><small>{escape(self._told)}</small></p>'
                * bool(self.source)
            )
        )

    def _repr_mimebundle_(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/html": self._repr_html_(), "text/plain": str(self)}
        if self.source:
            bundle[MIME] = [{"kind": CONSTANTS, "source": self.source}]
        return bundle


def aligned(rows: Sequence[Sequence[object]]) -> str:
    """Rows as text, each column as wide as its widest cell."""
    lines = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def status_html(status: str) -> str:
    """Mark and word of a status.

    Raises:
        ValueError: if there is no such status.
    """
    word = check_status(status)
    mark = el(
        "svg", glyph(word, 8, 8), width=16, height=16, viewBox="0 0 16 16", aria_hidden="true"
    )
    return f'<span class="pr-status" data-status="{word}">{mark}<span>{word}</span></span>'


def cell_html(value: object) -> str:
    """A cell: inline Markdown, or the mark and word of a ladder status."""
    if isinstance(value, Enum) and value.value in STATUSES:
        return status_html(str(value.value))
    rendered: str = _INLINE.renderInline(str(value))
    return _CODE.sub(lambda code: _END_OF_WORD.sub(r"\g<0><wbr>", code[0]), rendered)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, source: str = "") -> Table:
    """Make a table from computed values. Text is inline Markdown; a ladder status gets its mark.

    Args:
        headers: one heading for each column.
        rows: one sequence for each row, as long as ``headers``.
        source: where its constants of chips come from, rates and clocks: the words after "Constants
            of chips, not measured here:". Times have no place in this table: see `time_table`.

    Raises:
        ValueError: there are no columns, or a row has more or fewer cells than there are headings.
    """
    if not headers:
        raise ValueError("a table needs at least one column")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(headers):
            raise ValueError(
                f"row {number} of the table has {len(row)} cells and there are "
                f"{len(headers)} headings: {tuple(row)!r}"
            )
    # A heading without words names nothing: the corner of a table is an ordinary, empty cell.
    top = "".join(
        f'<th scope="col">{cell_html(name)}</th>' if name else "<td></td>" for name in headers
    )
    body = "".join(
        "<tr>" + "".join(f"<td>{cell_html(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    markup = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return Table(markup, aligned([headers, *rows]), f"Table: {', '.join(headers)}", source)
