"""The grid as a loop nest: the order in which its programs run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from pallas_rungs.figures.programs import Program, program_name
from pallas_rungs.figures.svg import SVG, Element, Figure, el, number, text, text_width
from pallas_rungs.figures.theme import colour

MOST_PROGRAMS = 144
"""More programs than this cannot be told apart in one picture."""

_NAMES = "ijklmn"


def grid_walk(
    grid: Sequence[int],
    *,
    alt: str,
    order: Sequence[Program] | None = None,
    axes: Sequence[str] | None = None,
) -> Figure:
    """Draw a grid as nested loops, and the path on which its programs are visited.

    Args:
        grid: number of programs along each axis, one to three axes.
        alt: what the figure shows, for readers who cannot see it.
        order: program ids as they were visited, e.g. from a simulator's grid point recorder; the
            order of a loop nest, last axis fastest, if None. It may visit only some programs.
        axes: names of the axes; ``i``, ``j``, ``k`` if None.

    Raises:
        ValueError: if the grid has no or more than three axes, an empty axis or too many programs;
            if `order` holds an id that is not in the grid or twice; if `axes` does not fit.
    """
    sizes = tuple(int(n) for n in grid)
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise ValueError(f"grid {sizes}: one to three axes of at least one program can be drawn")
    if math.prod(sizes) > MOST_PROGRAMS:
        raise ValueError(
            f"grid {sizes} has {math.prod(sizes)} programs; at most {MOST_PROGRAMS} can be told "
            "apart. Draw a smaller grid."
        )
    names = tuple(_NAMES[: len(sizes)] if axes is None else axes)
    if len(names) != len(sizes):
        raise ValueError(f"axes names {len(names)} axes, but the grid has {len(sizes)}")
    visits = [tuple(int(i) for i in p) for p in (np.ndindex(*sizes) if order is None else order)]
    for program in visits:
        if len(program) != len(sizes) or not all(
            0 <= i < n for i, n in zip(program, sizes, strict=True)
        ):
            raise ValueError(f"order visits {program}, which is not in the grid {sizes}")
    if len(set(visits)) != len(visits):
        raise ValueError("order visits a program twice; draw each run on its own")
    steps = {program: step for step, program in enumerate(visits)}
    panels = (_loops(sizes, names), *_planes(sizes, names, steps))
    return Figure(alt=alt, panels=panels)


def _loops(sizes: Sequence[int], names: Sequence[str]) -> SVG:
    """The loop nest as text."""
    lines = [
        f"{'  ' * depth}for {name} in range({size}):"
        for depth, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]
    lines.append(f"{'  ' * len(sizes)}kernel({', '.join(names)})")
    body = []
    for row, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        body.append(
            text(indent * 7.9, 16 + row * 23, line.strip(), size=13, fill=colour("text"), mono=True)
        )
    width = max(text_width(line, 13, mono=True) for line in lines) + 4
    desc = "; ".join(line.strip().rstrip(":") for line in lines) + "."
    return SVG(width, 23 * len(lines) + 2, tuple(body), "The grid as a loop nest", desc)


def _planes(
    sizes: Sequence[int], names: Sequence[str], steps: dict[tuple[int, ...], int]
) -> tuple[SVG, ...]:
    """One drawing for each value of the first of three axes; one drawing for fewer axes."""
    if len(sizes) < 3:
        return (_plane(sizes, names, (), steps),)
    return tuple(_plane(sizes, names, (first,), steps) for first in range(sizes[0]))


def _plane(
    sizes: Sequence[int],
    names: Sequence[str],
    lead: tuple[int, ...],
    steps: dict[tuple[int, ...], int],
) -> SVG:
    """The last two axes as rows and columns; the path goes through the cells in order of visit."""
    inner = sizes[len(lead) :]
    rows, columns = (1, inner[0]) if len(inner) == 1 else (inner[0], inner[1])
    cell = min(64.0, 300.0 / columns)
    height = min(cell, 46.0)
    left, top = (22.0, 40.0) if len(inner) > 1 else (1.0, 40.0)

    def program(row: int, column: int) -> tuple[int, ...]:
        return (*lead, column) if len(inner) == 1 else (*lead, row, column)

    def centre(p: tuple[int, ...]) -> tuple[float, float]:
        row = p[-2] if len(inner) > 1 else 0
        return left + (p[-1] + 0.5) * cell, top + (row + 0.5) * height

    here = [p for p in sorted(steps, key=steps.__getitem__) if p[: len(lead)] == lead]
    body: list[Element] = []
    if lead:
        body.append(
            text(0, 13, f"{names[0]} = {lead[0]}", size=13, weight=600, fill=colour("text"),
                 mono=True)
        )  # fmt: skip
    body.append(text(left, top - 8, f"{names[-1]} →", size=11.5, fill=colour("muted"), mono=True))
    if len(inner) > 1:
        body.append(text(2, top + 15, names[-2], size=11.5, fill=colour("muted"), mono=True))
        body.append(text(2, top + 29, "↓", size=11.5, fill=colour("muted"), mono=True))
    for row in range(rows):
        for column in range(columns):
            visited = program(row, column) in steps
            body.append(
                el("rect", x=left + column * cell + 1.5, y=top + row * height + 1.5,
                   width=cell - 3, height=height - 3, rx=4,
                   fill=colour("raised") if visited else colour("panel"),
                   stroke=colour("strong"), stroke_dasharray=None if visited else "3 3")
            )  # fmt: skip
    body.extend(_path([centre(p) for p in here]))
    small = cell < 34
    for p in here:
        x, y = centre(p)
        body.append(
            el("circle", cx=x, cy=y, r=9 if small else 11.5, fill=colour("fill-1"),
               stroke=colour("1"), stroke_width=1.5)
        )  # fmt: skip
        body.append(
            text(x, y + 4, str(steps[p]), size=10.5 if small else 12, weight=600,
                 fill=colour("text"), anchor="middle")
        )  # fmt: skip
    shown = ", ".join(f"{program_name(p)} at step {steps[p]}" for p in here)
    return SVG(
        left + columns * cell + 1,
        top + rows * height + 2,
        tuple(body),
        f"Order of the programs{f', {names[0]} = {lead[0]}' if lead else ''}",
        f"Programs in order: {shown}." if here else "No program was visited here.",
    )


def _path(points: Sequence[tuple[float, float]]) -> list[Element]:
    """Lines from visit to visit; a jump back to another row is drawn thinner and dashed."""
    steady: list[str] = []
    jumps: list[str] = []
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        piece = f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"
        (steady if y0 == y1 else jumps).append(piece)
    drawn = []
    if jumps:
        drawn.append(
            el("path", d="".join(jumps), stroke=colour("1"), stroke_width=1.25,
               stroke_dasharray="3 3")
        )  # fmt: skip
    if steady:
        drawn.append(el("path", d="".join(steady), stroke=colour("1"), stroke_width=2.5))
    return drawn
