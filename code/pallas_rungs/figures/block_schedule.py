"""Which block each operand needs at each step of the grid, and where it has to be moved for that.

A block that a step needs and the step before it had as well is not moved again: it stays, and an
operand moves once for each stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pallas_rungs.figures.calls import Call, Operand, read_call
from pallas_rungs.figures.stays import Stay, stays
from pallas_rungs.figures.svg import SVG, Element, Figure, el, text, text_width
from pallas_rungs.figures.theme import HIGHLIGHTS, colour

MOST_STEPS = 64
"""More steps than this cannot be told apart in one picture."""

_LABEL = 12.0
_BAR = 26.0
_LANE = 32.0


def block_schedule(
    function: Callable[..., Any],
    *args: Any,
    alt: str,
    names: Sequence[str] | None = None,
    index: int | None = None,
    scalars: Sequence[Any] = (),
) -> Figure:
    """Draw the steps of a grid from left to right, and below them the block of each operand.

    A bar is a stay, steps in a row that need the same block; the block has to be moved where a bar
    begins. The bar's label is the block's index along the dimensions in which the operand has
    several blocks. Within an operand a block keeps its colour. Long schedules are wrapped.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        alt: what the figure shows, for readers who cannot see it.
        names: names of inputs and outputs; the kernel's argument names if None.
        index: which `pallas_call`, from 0, if there are several.
        scalars: values of prefetched scalars, if index maps read them.

    Raises:
        ValueError: as `read_call`; or if there are too many steps to draw.
    """
    call = read_call(function, *args, index=index, names=names, scalars=scalars)
    if len(call.programs) > MOST_STEPS:
        raise ValueError(
            f"the grid {call.grid} has {len(call.programs)} steps; at most {MOST_STEPS} can be "
            "told apart. Draw a smaller case."
        )
    panels = tuple(
        _panel(call, width, show) for width, show in ((640.0, "wide"), (324.0, "narrow"))
    )
    return Figure(alt=alt, panels=panels)


def _varying(operand: Operand) -> list[int]:
    """Dimensions along which the array has several blocks; the first if there are none."""
    pairs = zip(operand.shape, operand.block, strict=True)
    return [d for d, (extent, size) in enumerate(pairs) if extent > size] or [0]


def _moves(operand: Operand) -> str:
    count = len(stays(operand))
    kind = "fetch" if operand.role == "input" else "write"
    return f"{count} {kind}" + ("" if count == 1 else "es" if kind == "fetch" else "s")


def _panel(call: Call, width: float, show: str) -> SVG:
    """All lanes, wrapped to the width."""
    steps = len(call.programs)
    words = [w for o in call.operands for w in (o.name, _moves(o))]
    gutter = max(text_width(w, _LABEL, mono=True) for w in words) + 12
    labels = [
        text_width(_label(stay, _varying(o)), _LABEL, mono=True)
        for o in call.operands
        for stay in stays(o)
    ]
    cell = min(max(*labels, 22.0) + 6, width - gutter - 2)
    row = min(max(int((width - gutter - 2) // cell), 1), steps)
    cell = min((width - gutter - 2) / row, 64.0)
    body: list[Element] = []
    y = 0.0
    for start in range(0, steps, row):
        shown = range(start, min(start + row, steps))
        body.append(text(0, y + 13, "step", size=_LABEL, fill=colour("muted")))
        for step in shown:
            body.append(
                text(gutter + (step - start + 0.5) * cell, y + 13, str(step), size=11.5,
                     fill=colour("muted"), anchor="middle", mono=True)
            )  # fmt: skip
        y += 20
        for operand in call.operands:
            body.extend(_lane(operand, shown, gutter, cell, y))
            y += _LANE
        y += 10
    desc = " ".join(_describe(operand) for operand in call.operands)
    return SVG(gutter + row * cell + 2, y - 8, tuple(body), "Blocks step by step", desc, show=show)


def _label(stay: Stay, dimensions: Sequence[int]) -> str:
    return ",".join(str(stay.block[d]) for d in dimensions)


def _lane(
    operand: Operand, shown: range, gutter: float, cell: float, y: float
) -> list[Element]:  # fmt: skip
    """One operand along the shown steps; its name, and how often it moves in all."""
    parts = [
        text(0, y + 12, operand.name, size=_LABEL, weight=600, fill=colour("text"), mono=True),
        text(0, y + 25, _moves(operand), size=11, fill=colour("muted")),
    ]
    held = stays(operand)
    dimensions = _varying(operand)
    colours = {stay.block: 0 for stay in held}
    for number, block in enumerate(colours):
        colours[block] = number % HIGHLIGHTS + 1
    for stay in held:
        first, last = max(stay.first, shown[0]), min(stay.last, shown[-1])
        if first > last:
            continue
        x = gutter + (first - shown[0]) * cell
        long = (last - first + 1) * cell
        hue = colours[stay.block]
        parts.append(
            el("rect", x=x + 1.5, y=y + 1.5, width=long - 3, height=_BAR - 3, rx=4,
               fill=colour(f"fill-{hue}"), stroke=colour(str(hue)), stroke_width=1.5,
               stroke_dasharray=None if first == stay.first else "3 3")
        )  # fmt: skip
        parts.append(
            text(x + long / 2, y + _BAR / 2 + 4, _label(stay, dimensions), size=_LABEL, weight=600,
                 fill=colour("text"), anchor="middle", mono=True)
        )  # fmt: skip
    return parts


def _describe(operand: Operand) -> str:
    told = ", ".join(
        f"block {stay.block} at "
        + (
            f"step {stay.first}"
            if stay.first == stay.last
            else f"steps {stay.first} to {stay.last}"
        )
        for stay in stays(operand)
    )
    return f"{operand.name}, {_moves(operand)}: {told}."
