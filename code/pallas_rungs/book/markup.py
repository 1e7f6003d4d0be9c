"""Small pieces of a page made from data: sentences with code in them, tables, rung marks."""

from __future__ import annotations

from collections.abc import Sequence

from docutils import nodes


def prose(text: str, *, stars: bool = False) -> list[nodes.Node]:
    """Turn a sentence with `backticks`, and *stars* where they count, into nodes."""
    found: list[nodes.Node] = []
    for position, part in enumerate(text.split("`")):
        if position % 2:
            found.append(nodes.literal(text=part))
            continue
        for inner, piece in enumerate(part.split("*") if stars else [part]):
            if piece:
                found.append(nodes.emphasis("", piece) if inner % 2 else nodes.Text(piece))
    return found


def rung_mark(rung: str) -> nodes.inline:
    """Make the mark of a rung; its number and colour come from the stylesheet."""
    return nodes.inline("", rung, classes=["pr-rung", f"pr-rung-{rung}"])


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Sequence[nodes.Node]]],
    *,
    classes: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> nodes.table:
    """Make a table.

    Args:
        heads: the column titles.
        rows: for each row, for each column, the inline nodes of the cell.
        classes: CSS classes of the table.
        ids: HTML ids, one for each row; none when empty.
    """
    group = nodes.tgroup(cols=len(heads))
    group.extend(nodes.colspec(colwidth=1) for _ in heads)
    head = nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in heads))
    group += nodes.thead("", head)
    body = nodes.tbody()
    for number, cells in enumerate(rows):
        row = nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *c)) for c in cells))
        if ids:
            row["ids"] = [ids[number]]
        body += row
    group += body
    return nodes.table("", group, classes=list(classes))
