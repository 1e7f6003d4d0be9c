"""Heat maps: a grid of cells for two sizes, darker where a figure is larger, hatched where none is.

The shade is never the only place of a figure: each cell holds it in words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pallas_rungs.figures.svg import (
    SVG,
    Element,
    Figure,
    el,
    hatch,
    hatched_swatch,
    mark,
    text,
    text_width,
)
from pallas_rungs.figures.theme import colour

_SIZE = 13.0
_SMALL = 12.0
_CELL = (62.0, 44.0)
_GAP = 2.0
_TOP, _LEFT = 62.0, 48.0
_DARKEST = 0.45


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        value: the figure that decides the shade; None for a cell that was refused.
        label: what stands in it, a few letters: the figure in words, or "refused".
        note: a second, smaller line; empty for none.
        outlined: whether it stands out, as the best ones do.
    """

    value: float | None
    label: str
    note: str = ""
    outlined: bool = False


@dataclass(frozen=True)
class HeatMap:
    """One drawing.

    Attributes:
        name: what it is of: a chip.
        rows: heading of each row.
        columns: heading of each column.
        cells: (row, column) -> cell, for every row and column.
    """

    name: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], Cell]


def heat_maps(
    maps: Sequence[HeatMap],
    *,
    across: str,
    down: str,
    alt: str,
    outlined: str,
    shade: str = "darker is slower",
    worst: float | None = None,
) -> Figure:
    """Draw heat maps side by side, all with the same shades.

    Args:
        maps: one drawing each.
        across: what the columns are.
        down: what the rows are.
        alt: what the figure shows, for readers who cannot see it.
        outlined: what an outline means, for the key.
        shade: what the shade means, for the key.
        worst: the figure from which a cell is darkest; the largest one, if None. The least of all
            is lightest, and the shade goes with the logarithm between them.

    Raises:
        ValueError: there is no map; a map lacks a cell, or has no row; a figure is not positive.
    """
    if not maps:
        raise ValueError("a heat map needs at least one map")
    for one in maps:
        if not one.rows or not one.columns:
            raise ValueError(f"the map {one.name!r} has no row or no column")
        for place in ((row, column) for row in one.rows for column in one.columns):
            if place not in one.cells:
                raise ValueError(f"the map {one.name!r} has no cell for {place}")
            value = one.cells[place].value
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"the map {one.name!r} at {place}: {value} is no positive figure")
    values = [cell.value for one in maps for cell in one.cells.values() if cell.value is not None]
    least = min(values, default=1.0)
    most = worst or max(values, default=1.0)
    return Figure(
        alt=alt,
        panels=tuple(_panel(one, across, down, least, most) for one in maps),
        key=(
            (_shades(), shade),
            (_outline(), outlined),
            (hatched_swatch(), "refused: no figure"),
        ),
    )


def _shades() -> Element:
    return mark(
        el("rect", x=1, y=1, width=7, height=14, fill=colour("2"), fill_opacity="0.1"),
        el("rect", x=8, y=1, width=7, height=14, fill=colour("2"), fill_opacity="0.45"),
        el("rect", x=1, y=1, width=14, height=14, fill="none", stroke=colour("strong")),
    )


def _outline() -> Element:
    return mark(
        el(
            "rect",
            x=2,
            y=2,
            width=12,
            height=12,
            fill="none",
            stroke=colour("good"),
            stroke_width=3,
        )
    )


def _panel(one: HeatMap, across: str, down: str, least: float, most: float) -> SVG:
    ink, muted = colour("text"), colour("muted")
    left = max([_LEFT, *(text_width(row, _SIZE) + 14 for row in one.rows)])
    width, height = _CELL
    body: list[Element] = [
        text(0, 14, one.name, size=14, fill=ink, weight=600),
        text(left, 34, f"{across} →", size=_SMALL, fill=muted),
        text(0, _TOP - 8, f"{down} ↓", size=_SMALL, fill=muted),
    ]
    for place, column in enumerate(one.columns):
        x = left + place * (width + _GAP) + width / 2
        body.append(text(x, _TOP - 8, column, size=_SIZE, fill=ink, anchor="middle"))
    for number, row in enumerate(one.rows):
        y = _TOP + number * (height + _GAP)
        body.append(text(left - 8, y + height / 2 + 4, row, size=_SIZE, fill=ink, anchor="end"))
        for place, column in enumerate(one.columns):
            x = left + place * (width + _GAP)
            body += _cell(one.cells[row, column], x, y, least, most)
    return SVG(
        left + len(one.columns) * (width + _GAP),
        _TOP + len(one.rows) * (height + _GAP),
        tuple(body),
        f"{one.name}, {down} by {across}",
        _describe(one, across, down),
    )


def _cell(cell: Cell, x: float, y: float, least: float, most: float) -> list[Element]:
    width, height = _CELL
    ink, muted = colour("text"), colour("muted")
    drawn: list[Element] = []
    if cell.value is None:
        drawn.append(el("path", d=hatch(x, y, width, height), stroke=colour("line")))
        drawn.append(
            el("rect", x=x, y=y, width=width, height=height, fill="none", stroke=colour("line"))
        )
    else:
        drawn.append(
            el(
                "rect",
                x=x,
                y=y,
                width=width,
                height=height,
                fill=colour("2"),
                fill_opacity=f"{shade_of(cell.value, least, most):.3f}",
            )
        )
    if cell.outlined:
        drawn.append(
            el(
                "rect",
                x=x + 1.5,
                y=y + 1.5,
                width=width - 3,
                height=height - 3,
                fill="none",
                stroke=colour("good"),
                stroke_width=3,
            )
        )
    middle = x + width / 2
    first = y + height / 2 + (-2 if cell.note else 4)
    fill = muted if cell.value is None else ink
    halo = colour("ground") if cell.value is None else None
    drawn.append(text(middle, first, cell.label, size=_SIZE, fill=fill, anchor="middle", halo=halo))
    if cell.note:
        drawn.append(
            text(middle, first + 15, cell.note, size=_SMALL, fill=ink, anchor="middle", halo=halo)
        )
    return drawn


def shade_of(value: float, least: float, most: float) -> float:
    """Return how opaque a cell's colour is: from the least figure up to `most` and beyond."""
    lightest = 0.03
    if most <= least:
        return lightest
    part = math.log(value / least) / math.log(most / least)
    return lightest + (_DARKEST - lightest) * min(1.0, max(0.0, part))


def _describe(one: HeatMap, across: str, down: str) -> str:
    told = []
    for row in one.rows:
        cells = []
        for column in one.columns:
            cell = one.cells[row, column]
            words = ", ".join(filter(None, (cell.label, cell.note)))
            cells.append(f"{column}: {words}{' (outlined)' if cell.outlined else ''}")
        told.append(f"{down} {row}, by {across}: {'; '.join(cells)}.")
    return " ".join(told)
