"""Where the drawn part of an array lies: scale, edges, what hangs over them, and their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_rungs.figures.svg import Element, el, hatch, text, text_width
from pallas_rungs.figures.theme import colour

TICK = 10.5
"""Size of the numbers along an edge, in pixels."""
_LONGEST = 280.0


@dataclass(frozen=True)
class Plane:
    """Place of one drawn slice: its origin, the scale of each axis, and its extents in elements.

    `extent` is the array's size, `reach` how far blocks go, past the edge included.
    """

    x: float
    y: float
    scale: tuple[float, float]
    extent: tuple[int, int]
    reach: tuple[int, int]

    def box(self, first: tuple[int, int], size: tuple[int, int]) -> tuple[float, ...]:
        """Pixel x, y, width, height of elements `first` (row, column) and `size`."""
        return (
            self.x + first[1] * self.scale[1],
            self.y + first[0] * self.scale[0],
            size[1] * self.scale[1],
            size[0] * self.scale[0],
        )


def two(values: Sequence[int], fill: int) -> tuple[int, int]:
    """The last two of `values`, with `fill` before a single one."""
    padded = (fill, fill, *(int(v) for v in values))
    return padded[-2], padded[-1]


def sizes(extent: tuple[int, int], block: tuple[int, int], label: float) -> tuple[float, float]:
    """Choose height and width in pixels for an array, true to its shape as far as labels fit.

    Args:
        extent: rows and columns that are drawn.
        block: block size in rows and columns.
        label: width of the widest label, in pixels.
    """
    rows, columns = (math.ceil(e / b) for e, b in zip(extent, block, strict=True))
    true = 200.0 / max(extent)
    height = extent[0] * true
    width = extent[1] * true
    height = min(max(height, min(rows * 32.0, 288.0), 40.0), _LONGEST)
    width = min(max(width, min(columns * (label + 14.0), _LONGEST), 56.0), _LONGEST)
    return height, width


def tick_marks(offsets: Sequence[int], at: Sequence[float], room: float) -> list[tuple[int, float]]:
    """Choose which offsets to write so that neighbours are `room` pixels apart."""
    kept: list[tuple[int, float]] = []
    for value, place in zip(offsets, at, strict=True):
        if not kept or place - kept[-1][1] >= room:
            kept.append((value, place))
    return kept


def overhang(plane: Plane) -> list[Element]:
    """Hatch what is drawn past the array's edge, to the right and below."""
    rows, columns = plane.extent
    past = [
        ((0, columns), (rows, plane.reach[1] - columns)),
        ((rows, 0), (plane.reach[0] - rows, plane.reach[1])),
    ]
    parts = []
    for first, size in past:
        if min(size) <= 0:
            continue
        x, y, width, height = plane.box(first, size)
        parts.append(
            el("path", d=hatch(x, y, width, height), stroke=colour("muted"), stroke_width=1)
        )
        parts.append(
            el(
                "rect",
                x=x,
                y=y,
                width=width,
                height=height,
                fill="none",
                stroke=colour("muted"),
                stroke_dasharray="4 3",
            )
        )
    return parts


def ticks(plane: Plane, firsts: Sequence[tuple[int, int]], *, rows: bool) -> list[Element]:
    """Write first elements of blocks along the top edge, and along the left edge if `rows`."""
    parts = []
    columns = sorted({0, *(f[1] for f in firsts)})
    widest = text_width(str(columns[-1]), TICK, mono=True) + 6
    at = [plane.x + c * plane.scale[1] for c in columns]
    for value, x in tick_marks(columns, at, widest):
        parts.append(text(x, plane.y - 5, str(value), size=TICK, fill=colour("muted"), mono=True))
    if rows:
        down = sorted({0, *(f[0] for f in firsts)})
        places = [plane.y + r * plane.scale[0] for r in down]
        for value, y in tick_marks(down, places, 13):
            parts.append(
                text(plane.x - 5, y + 9, str(value), size=TICK, fill=colour("muted"),
                     anchor="end", mono=True)
            )  # fmt: skip
    return parts
