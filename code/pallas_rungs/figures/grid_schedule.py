"""The schedule of a call: which programs compute, which skip, and which fetch a block anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pallas_rungs.figures.calls import Call, Operand, read_call
from pallas_rungs.figures.programs import program_name
from pallas_rungs.figures.stays import stays
from pallas_rungs.figures.svg import SVG, Element, Figure, el, hatch, mark, text
from pallas_rungs.figures.theme import colour

MOST_COLUMNS = 8
"""More columns than this leave no room for words in a cell on a phone."""


def fetches(operand: Operand) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell for each program whether its block is not the one of the program before it."""
    fetched = np.zeros(len(operand.starts), bool)
    fetched[[stay.first for stay in stays(operand)]] = True
    return fetched


def grid_schedule(
    function: Callable[..., Any],
    *args: Any,
    operand: str,
    share: Any,
    alt: str,
    axes: Sequence[str] = ("i", "j"),
    index: int | None = None,
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw the last two axes of a grid: what each program does, and which block it holds.

    A cell is a program. It is filled where the program computes, hatched too where a part of its
    block is masked, and an empty dashed frame where the program skips its work. An arrow and bold
    type say that the block of `operand` is not the one of the program before, and is fetched.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        operand: name of the input to follow.
        share: (rows, columns), how much of each program's block counts: 0 skipped, 1 whole.
        alt: what the figure shows, for readers who cannot see it.
        axes: names of the two axes.
        index: which `pallas_call`, from 0, if there are several.
        names: names of inputs and outputs; the kernel's argument names if None, which may be too
            long for a cell.

    Raises:
        ValueError: as `read_call`; if there is no such operand, fewer than two axes, too many
            columns, or `share` does not fit the grid.
    """
    call = read_call(function, *args, index=index, names=names)
    followed = next((o for o in call.operands if o.name == operand), None)
    if followed is None:
        known = ", ".join(o.name for o in call.operands)
        raise ValueError(f"no operand {operand!r}; there are: {known}")
    if len(call.grid) < 2 or call.grid[-1] > MOST_COLUMNS:
        raise ValueError(
            f"grid {call.grid}: the last two axes are drawn, the last of at most {MOST_COLUMNS}"
        )
    parts = np.asarray(share, np.float64)
    if parts.shape != call.grid[-2:] or parts.min() < 0 or parts.max() > 1:
        raise ValueError(f"share must be {call.grid[-2:]} numbers from 0 to 1, not {parts.shape}")
    counted = fetches(followed)[: parts.size].sum()
    key = (
        (mark(_frame(1, 1, 14, 14, 1.0)), "computes: every element counts"),
        (mark(_frame(1, 1, 14, 14, 0.5), _lines(1, 1, 14, 14, 4)), "computes: some are masked"),
        (mark(_frame(1, 1, 14, 14, 0.0)), "skipped"),
        (
            mark(text(8, 13, "↓", size=15, weight=700, fill=colour("text"), anchor="middle")),
            f"fetches a block of {operand}: {counted} of {parts.size} programs",
        ),
    )
    return Figure(alt=alt, panels=(_drawing(call, followed, parts, axes),), key=key)


def _frame(x: float, y: float, width: float, height: float, part: float) -> Element:
    return el(
        "rect",
        x=x,
        y=y,
        width=width,
        height=height,
        rx=3,
        fill=colour("fill-1") if part else colour("panel"),
        stroke=colour("1") if part else colour("strong"),
        stroke_width=1.5,
        stroke_dasharray=None if part else "3 3",
    )


def _lines(x: float, y: float, width: float, height: float, step: float) -> Element:
    return el("path", d=hatch(x, y, width, height, step=step), stroke=colour("1"), opacity=0.35)


def _drawing(
    call: Call, followed: Operand, parts: np.ndarray[Any, Any], axes: Sequence[str]
) -> SVG:
    rows, columns = parts.shape
    left, top = 24.0, 24.0
    width, height = min(76.0, 296.0 / columns), 38.0
    moves = fetches(followed)
    varying = int(np.argmax(np.ptp(followed.starts, axis=0)[-2:])) + followed.starts.shape[1] - 2
    body = [
        text(left, 14, f"{axes[1]} →", size=12, fill=colour("muted"), mono=True),
        text(2, top + 16, axes[0], size=12, fill=colour("muted"), mono=True),
        text(2, top + 31, "↓", size=12, fill=colour("muted"), mono=True),
    ]
    told = []
    for place in range(parts.size):
        row, column = divmod(place, columns)
        x, y = left + column * width + 2, top + row * height + 2
        part = float(parts[row, column])
        held = int(followed.starts[place, varying]) // followed.block[varying]
        words = f"{followed.name} {held}"
        body.append(_frame(x, y, width - 4, height - 4, part))
        if 0 < part < 1:
            body.append(_lines(x, y, width - 4, height - 4, 7))
        body.append(
            text(
                x + (width - 4) / 2,
                y + (height - 4) / 2 + 4.5,
                f"↓{words}" if moves[place] else words,
                size=12.5 if width > 44 else 11,
                weight=700 if moves[place] else None,
                fill=colour("text") if moves[place] else colour("muted"),
                anchor="middle",
                mono=True,
                halo=colour("fill-1") if 0 < part < 1 else None,
            )
        )
        done = "skips" if part == 0 else "computes" if part == 1 else "computes with a mask"
        who = program_name(call.programs[place][-2:])
        told.append(f"{who} {done}, {'fetches' if moves[place] else 'holds'} {words}")
    return SVG(
        left + columns * width + 1,
        top + rows * height + 2,
        tuple(body),
        f"Schedule over {axes[0]} and {axes[1]}",
        "Programs in order: " + "; ".join(told) + ".",
    )
