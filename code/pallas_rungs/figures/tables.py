"""Tables drawn from data: plain ones, and bugs by rungs with a mark for each status."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape

from markdown_it import MarkdownIt

from pallas_rungs.figures.glyphs import RUNGS, STATUSES, check_status, glyph
from pallas_rungs.figures.ladder_picture import Rows, climbers
from pallas_rungs.figures.svg import el
from pallas_rungs.figures.theme import stylesheet

_INLINE = MarkdownIt("commonmark", {"html": False})

_CSS = (
    ".pr-figure .pr-scroll{overflow-x:auto}"
    ".pr-figure table{border-collapse:collapse;font:400 .95rem/1.4 var(--f-sans);margin:0}"
    ".pr-figure :is(th,td){padding:.4rem .8rem;text-align:left;vertical-align:top;border:0;"
    "border-bottom:1px solid var(--f-line)}"
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
    "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:.3rem .1rem;"
    "border-bottom:0;border-top:2px solid var(--f-strong)}"
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
    """

    markup: str
    plain: str
    label: str

    def __str__(self) -> str:
        return self.plain

    def _repr_html_(self) -> str:
        style = stylesheet(self.markup + _CSS) + _CSS
        return (
            f'<div class="pr-figure"><style>{style}</style><div class="pr-scroll" role="region" '
            f'tabindex="0" aria-label="{escape(self.label)}">{self.markup}</div></div>'
        )

    def _repr_mimebundle_(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": str(self)}


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


def _cell(value: object) -> str:
    if isinstance(value, Enum) and value.value in STATUSES:
        return status_html(str(value.value))
    rendered: str = _INLINE.renderInline(str(value))
    return rendered


def table(
    head: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str = "", label: str = ""
) -> Table:
    """A plain table. Text cells are inline Markdown; a ladder status gets its mark.

    Args:
        head: names of the columns.
        rows: a value for each column; the first one names the row.
        caption: one line over the table, inline Markdown.
        label: the table's name for readers who hear the page; the caption or first column if empty.

    Raises:
        ValueError: if there are no columns, or a row has another number of cells.
    """
    if not head:
        raise ValueError("a table needs at least one column")
    for number, row in enumerate(rows):
        if len(row) != len(head):
            raise ValueError(
                f"row {number} has {len(row)} cells, but there are {len(head)} columns: {row!r}"
            )
    title = f"<caption>{_cell(caption)}</caption>" if caption else ""
    top = "".join(f'<th scope="col">{_cell(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row" style="font-weight:400">{_cell(row[0])}</th>'
        + "".join(f"<td>{_cell(value)}</td>" for value in row[1:])
        + "</tr>"
        for row in rows
    )
    markup = f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    plain = "\n".join(" | ".join(map(str, line)) for line in (head, *rows))
    return Table(markup, plain, label or caption or head[0])


def ladder_matrix(
    rows: Rows,
    *,
    label: str = "What each rung said about each kernel",
    healthy: Collection[str] = (),
) -> Table:
    """Kernels by rungs: what every rung said, and which was the first to catch.

    The rung that first blames a kernel is set off. Rungs after it are shown too: they may have
    passed what a lower one caught.

    Args:
        rows: name -> {rung: status}, or pairs of them, in the order to show.
        label: the table's name for readers who hear the page.
        healthy: names of the kernels that are known to be right.

    Raises:
        ValueError: as `climbers`.
    """
    pairs = list(rows.items()) if hasattr(rows, "items") else list(rows)
    known = {c.name: c for c in climbers(pairs, healthy)}
    tried = [rung for rung in RUNGS if any(rung in c.statuses for c in known.values())]
    top = "".join(f'<th scope="col">{rung}</th>' for rung in tried)
    lines, plain = [], [" | ".join(["", *tried])]
    for name, _ in pairs:
        climber = known[name]
        cells = []
        for rung in tried:
            status = climber.statuses.get(rung)
            css = ' class="pr-caught"' if rung == climber.caught else ""
            cells.append(f"<td{css}>{status_html(status) if status else ''}</td>")
        lines.append(f'<tr><th scope="row">{_cell(name)}</th>{"".join(cells)}</tr>')
        plain.append(" | ".join([name, *(climber.statuses.get(r, "") for r in tried)]))
    markup = (
        f'<table class="pr-matrix"><thead><tr><th scope="col">kernel</th>{top}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )
    return Table(markup, "\n".join(plain), label)
