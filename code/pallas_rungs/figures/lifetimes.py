"""How long each block of a call stays in fast memory, read from its index maps.

A block stays while the programs, taken in the order of the loop nest, ask for it one after the
other. When the next program asks for another one, an input block is replaced and an output block
is carried away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pallas_rungs.figures.calls import Operand, read_call
from pallas_rungs.figures.svg import SVG, Element, Figure, el, swatch, text, text_width
from pallas_rungs.figures.theme import colour

MOST_STEPS = 12
"""More steps than this do not fit on a phone."""

_STEPS_WIDTH = 276.0
_LABEL = 12.0
_ROW = 34.0
_BAR = 26.0
_INPUT, _OUTPUT = 1, 2


@dataclass(frozen=True)
class Stay:
    """One block, and the steps of the loop nest through which it stays.

    Attributes:
        first: the first step that has it.
        last: the last step that has it without a break.
        block: index of the block along each dimension.
        elements: how many elements of the array it covers; what hangs over the edge is not counted.
    """

    first: int
    last: int
    block: tuple[int, ...]
    elements: int


def stays(operand: Operand) -> tuple[Stay, ...]:
    """Return the stays of an operand's blocks in order; a block that comes back has several."""
    starts = operand.starts
    new = np.flatnonzero((starts[1:] != starts[:-1]).any(axis=1)) + 1
    firsts = [0, *new.tolist()]
    lasts = [*(new - 1).tolist(), len(starts) - 1]
    return tuple(
        Stay(first, last, *_block(operand, starts[first].tolist()))
        for first, last in zip(firsts, lasts, strict=True)
    )


def _block(operand: Operand, start: list[int]) -> tuple[tuple[int, ...], int]:
    index = tuple(s // b for s, b in zip(start, operand.block, strict=True))
    inside = (
        max(0, min(b, n - s)) for s, b, n in zip(start, operand.block, operand.shape, strict=True)
    )
    return index, math.prod(inside)


def times_moved(
    function: Callable[..., Any], *args: Any, index: int | None = None
) -> dict[str, float]:
    """Count how often each operand of a `pallas_call` crosses between large and fast memory.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        index: which `pallas_call`, from 0, if there are several.

    Returns:
        Name of each operand → elements moved over elements of the array. 1.0 is once.

    Raises:
        ValueError: as `read_call`.
    """
    call = read_call(function, *args, index=index)
    return {
        operand.name: sum(stay.elements for stay in stays(operand)) / math.prod(operand.shape)
        for operand in call.operands
    }


def block_lifetimes(
    function: Callable[..., Any],
    *args: Any,
    alt: str,
    names: Sequence[str] | None = None,
    index: int | None = None,
) -> Figure:
    """Draw a line for each operand of a `pallas_call`: which block is there at which step.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        alt: what the figure shows, for readers who cannot see it.
        names: names of inputs and outputs; the kernel's argument names if None.
        index: which `pallas_call`, from 0, if there are several.

    Raises:
        ValueError: as `read_call`; or if the grid has more steps than a phone can show.
    """
    call = read_call(function, *args, names=names, index=index)
    steps = len(call.programs)
    if steps > MOST_STEPS:
        raise ValueError(
            f"grid {call.grid} has {steps} steps; at most {MOST_STEPS} fit on a phone. "
            "Draw a smaller case."
        )
    left = max(text_width(o.name, _LABEL, mono=True) for o in call.operands) + 12
    step = _STEPS_WIDTH / steps
    top = 22.0
    body: list[Element] = [text(0, 14, "step", size=_LABEL, fill=colour("muted"))]
    for number in range(steps):
        x = left + (number + 0.5) * step
        body.append(text(x, 14, str(number), size=_LABEL, fill=colour("muted"), anchor="middle"))
    said = []
    for row, operand in enumerate(call.operands):
        y = top + row * _ROW
        shade = _INPUT if operand.role == "input" else _OUTPUT
        body.append(text(0, y + 18, operand.name, size=_LABEL, fill=colour("text"), mono=True))
        spans = stays(operand)
        for stay in spans:
            body.extend(_bar(stay, left, y, step, shade))
        said.append(
            f"{operand.name}: "
            + ", ".join(
                f"block {_index(s)} at step {s.first}"
                if s.first == s.last
                else f"block {_index(s)} at steps {s.first} to {s.last}"
                for s in spans
            )
        )
    drawing = SVG(
        left + _STEPS_WIDTH + 2,
        top + len(call.operands) * _ROW,
        tuple(body),
        "Blocks in fast memory, step by step",
        "; ".join(said) + ".",
    )
    key = ((swatch(_INPUT), "a block of an input"), (swatch(_OUTPUT), "a block of an output"))
    return Figure(alt=alt, panels=(drawing,), key=key)


def _bar(stay: Stay, left: float, y: float, step: float, shade: int) -> list[Element]:
    x, width = left + stay.first * step, (stay.last - stay.first + 1) * step
    bar = el(
        "rect",
        x=x + 1.5,
        y=y,
        width=width - 3,
        height=_BAR,
        rx=4,
        fill=colour(f"fill-{shade}"),
        stroke=colour(str(shade)),
        stroke_width=1.5,
    )
    label = text(
        x + width / 2, y + 17, _index(stay), size=11.5, fill=colour("text"), anchor="middle"
    )
    return [bar, label] if text_width(_index(stay), 11.5) <= width else [bar]


def _index(stay: Stay) -> str:
    return ",".join(map(str, stay.block))
