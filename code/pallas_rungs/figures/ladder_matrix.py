"""Kernels by rungs: a table of what every rung said, with a mark for each status."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pallas_rungs.figures.climbers import Rows, climbers
from pallas_rungs.figures.glyphs import RUNGS
from pallas_rungs.figures.tables import Table, aligned, cell_html, status_html


def ladder_matrix(rows: Rows, *, alt: str, healthy: Collection[str] = ()) -> Table:
    """Kernels by rungs: what every rung said, and which was the first to catch.

    The rung that first blames a kernel is set off. Rungs after it are shown too: they may have
    passed what a lower one caught.

    Args:
        rows: name -> {rung: status}, or pairs of them, in the order to show.
        alt: the table's name for readers who hear the page.
        healthy: names of the kernels that are known to be right.

    Raises:
        ValueError: as `climbers`.
    """
    pairs = list(rows.items() if isinstance(rows, Mapping) else rows)
    known = {c.name: c for c in climbers(pairs, healthy)}
    tried = [rung for rung in RUNGS if any(rung in c.statuses for c in known.values())]
    top = "".join(f'<th scope="col">{rung}</th>' for rung in tried)
    lines, plain = [], [["kernel", *tried]]
    for name, _ in pairs:
        climber = known[name]
        cells = []
        for rung in tried:
            status = climber.statuses.get(rung)
            css = ' class="pr-caught"' if rung == climber.caught else ""
            cells.append(f"<td{css}>{status_html(status) if status else ''}</td>")
        lines.append(f'<tr><th scope="row">{cell_html(name)}</th>{"".join(cells)}</tr>')
        plain.append([name, *(climber.statuses.get(r, "") for r in tried)])
    markup = (
        f'<table class="pr-matrix"><thead><tr><th scope="col">kernel</th>{top}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )
    return Table(markup, aligned(plain), alt)
