"""Tables of computed values, as accessible HTML with a plain-text twin."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table that a cell shows by ending with it.

    Attributes:
        headers: one heading for each column. A part in backticks is set as code.
        rows: the cells, turned into text with ``str``; backticks as in the headings.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{_marked_up(header)}</th>' for header in self.headers)
        body = "".join(
            "<tr>" + "".join(f"<td>{_marked_up(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return (
            '<div class="pr-table" tabindex="0" role="group">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        lines = [self.headers, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.headers))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Make a table from computed values.

    Args:
        headers: one heading for each column.
        rows: one sequence for each row, as long as ``headers``.

    Returns:
        The table; the last expression of a cell shows it.

    Raises:
        ValueError: a row has more or fewer cells than there are headings; names the row.
    """
    for number, row in enumerate(rows, start=1):
        if len(row) != len(headers):
            raise ValueError(
                f"row {number} of the table has {len(row)} cells and there are "
                f"{len(headers)} headings: {tuple(row)!r}"
            )
    return Table(tuple(headers), tuple(tuple(map(str, row)) for row in rows))


def _marked_up(text: str) -> str:
    """Escape for HTML, and turn parts in backticks into code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
