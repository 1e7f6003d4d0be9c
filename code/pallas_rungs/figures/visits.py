"""Which block of an output each step of the grid holds, and when it is first and last held."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pallas_rungs.figures.calls import Call, Operand, read_call
from pallas_rungs.figures.glyphs import glyph
from pallas_rungs.figures.programs import Program, program_name, runs
from pallas_rungs.figures.stays import stays
from pallas_rungs.figures.svg import SVG, Element, Figure, el, mark, number, text, text_width
from pallas_rungs.figures.theme import colour

MOST_STEPS = 24
"""More steps than this cannot be told apart on a phone."""

_NAMES = "ijklmn"
_SIZE = 12.0
_ROW = 26.0


def stays_by_block(operand: Operand) -> dict[Program, list[range]]:
    """Steps during which each block of an operand is held, one range for each stay.

    Returns:
        Block index to its stays, in order; blocks in order of their first visit. A block that is
        left and held again later has more than one stay.
    """
    found: dict[Program, list[range]] = {}
    for stay in stays(operand):
        found.setdefault(stay.block, []).append(stay.steps)
    return found


def block_visits(
    function: Callable[..., Any],
    *args: Any,
    alt: str,
    operand: str | None = None,
    names: Sequence[str] | None = None,
    axes: Sequence[str] | None = None,
) -> Figure:
    """Draw the steps of a grid from left to right, and the block of one output that each holds.

    Every stay of a block in fast memory is a bar. The first visit and the last are marked, and so
    is each return to a block that was left before.

    Args:
        function: calls one `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        alt: what the figure shows, for readers who cannot see it.
        operand: name of the operand; the first output if None.
        names: names of inputs and outputs; the kernel's argument names if None.
        axes: names of the grid's axes; ``i``, ``j``, ``k`` … if None.

    Raises:
        ValueError: as `read_call`; or if there is no such operand, if there are too many steps, or
            if `axes` does not fit.
    """
    call = read_call(function, *args, names=names)
    known = [o.name for o in call.operands]
    if operand is not None and operand not in known:
        raise ValueError(f"no operand {operand!r}; there are: {', '.join(known)}")
    outputs = [o for o in call.operands if o.role == "output"]
    chosen = outputs[0] if operand is None else call.operands[known.index(operand)]
    if len(call.programs) > MOST_STEPS:
        raise ValueError(
            f"the grid {call.grid} has {len(call.programs)} steps; at most {MOST_STEPS} can be "
            "told apart. Draw a smaller call."
        )
    letters = tuple(_NAMES[: len(call.grid)] if axes is None else axes)
    if len(letters) != len(call.grid):
        raise ValueError(f"axes names {len(letters)} axes, but the grid has {len(call.grid)}")
    held = stays_by_block(chosen)
    returns = [ranges for ranges in held.values() if len(ranges) > 1]
    key = [(mark(_first(8, 8)), "first visit")]
    if len(returns) < len(held) or any(len(ranges[-1]) > 1 for ranges in returns):
        key.append((mark(_last(8, 8)), "last visit"))
    if returns:
        key.append((mark(glyph("refused", 8, 8)), "comes back to a block that it had left"))
    return Figure(alt=alt, panels=(_picture(call, chosen.name, letters, held),), key=tuple(key))


def _picture(
    call: Call, name: str, letters: Sequence[str], held: dict[Program, list[range]]
) -> SVG:
    steps = len(call.programs)
    labels = {block: f"{name} {program_name(block)}" for block in held}
    gutter = max(text_width(label, _SIZE, mono=True) for label in labels.values()) + 10
    cell = min(38.0, (336 - gutter) / steps)
    top = 20.0 * len(letters) + 6

    body: list[Element] = []
    for axis, letter in enumerate(letters):
        y = 14 + 20.0 * axis
        body.append(
            text(gutter - 10, y, letter, size=_SIZE, fill=colour("muted"), mono=True, anchor="end")
        )
        for step, program in enumerate(call.programs):
            x = gutter + (step + 0.5) * cell
            body.append(
                text(x, y, str(program[axis]), size=_SIZE, fill=colour("text"), mono=True,
                     anchor="middle")
            )  # fmt: skip
    for row, (block, ranges) in enumerate(held.items()):
        y = top + row * _ROW
        body.append(text(0, y + 17, labels[block], size=_SIZE, fill=colour("text"), mono=True))
        body.append(
            el("path", d=f"M{number(gutter)} {number(y + _ROW)}H{number(gutter + steps * cell)}",
               stroke=colour("line"))
        )  # fmt: skip
        body.extend(_row(ranges, gutter, y, cell))
    desc = " ".join(_sentence(name, block, ranges) for block, ranges in held.items())
    height = top + len(held) * _ROW + 2
    return SVG(gutter + steps * cell + 1, height, tuple(body), f"Visits to blocks of {name}", desc)


def _row(ranges: Sequence[range], gutter: float, y: float, cell: float) -> list[Element]:
    """The bars of one block, a dashed line where it is away, and the marks."""
    drawn: list[Element] = []
    middle = y + _ROW / 2
    for before, after in itertools.pairwise(ranges):
        left, right = gutter + before.stop * cell, gutter + after.start * cell
        drawn.append(
            el("path", d=f"M{number(left)} {number(middle)}H{number(right)}", stroke=colour("bad"),
               stroke_width=1.5, stroke_dasharray="3 3")
        )  # fmt: skip
    for place, stay in enumerate(ranges):
        good = place == 0
        drawn.append(
            el("rect", x=gutter + stay.start * cell + 1.5, y=y + 3, width=len(stay) * cell - 3,
               height=_ROW - 6, rx=4, fill=colour("fill-1" if good else "bad-bg"),
               stroke=colour("1" if good else "bad"), stroke_width=1.5)
        )  # fmt: skip
    single = ranges[0].start == ranges[-1].stop - 1
    shift = min(7.0, cell / 4) if single else 0.0
    drawn.append(_first(gutter + (ranges[0].start + 0.5) * cell - shift, middle))
    drawn.extend(
        glyph("refused", gutter + (stay.start + 0.5) * cell, middle, size=min(16, cell))
        for stay in ranges[1:]
    )
    if len(ranges) == 1 or len(ranges[-1]) > 1:  # else the cross has the cell
        drawn.append(_last(gutter + (ranges[-1].stop - 0.5) * cell + shift, middle))
    return drawn


def _first(x: float, y: float) -> Element:
    """A triangle that points into the bar, centred on (x, y)."""
    d = f"M{number(x - 4)} {number(y - 5)}L{number(x + 5)} {number(y)}L{number(x - 4)}"
    return el("path", d=f"{d} {number(y + 5)}z", fill=colour("1"))


def _last(x: float, y: float) -> Element:
    """A square, centred on (x, y)."""
    return el("rect", x=x - 4.5, y=y - 4.5, width=9, height=9, fill=colour("1"))


def _sentence(name: str, block: Program, ranges: Sequence[range]) -> str:
    held = [f"{'step' if len(stay) == 1 else 'steps'} {runs(stay)}" for stay in ranges]
    return f"Block {program_name(block)} of {name} is held in {', and again in '.join(held)}."
