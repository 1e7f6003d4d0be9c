"""Where the generic interpreter really reads when an index map asks for a block out of range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax._src.pallas import hlo_interpreter

from pallas_rungs.figures.blocks import choose
from pallas_rungs.figures.calls import Operand, read_call
from pallas_rungs.figures.programs import Program, program_name
from pallas_rungs.figures.svg import SVG, Element, Figure, el, number, swatch, text, text_width
from pallas_rungs.figures.theme import HIGHLIGHTS, colour

_LABEL = 12.0


def read_starts(operand: Operand) -> np.ndarray[Any, np.dtype[np.int64]]:
    """First elements of the blocks that `interpret=True` reads, for each program.

    The interpreter's own functions do the work: the array is padded to whole blocks, and
    `_dynamic_slice` takes the block. It is given arrays that hold their own indices, so what comes
    back says where it was read.

    Returns:
        Integers of shape (programs, dimensions), to compare with `operand.starts`.
    """
    padded: Any = hlo_interpreter._pad_to_block_dimension(
        jnp.zeros(operand.shape, jnp.int32), operand.block
    )
    keep = (False,) * len(operand.shape)
    found = np.zeros_like(operand.starts)
    for dimension in range(len(operand.shape)):
        indices = jnp.asarray(np.indices(padded.shape, np.int32)[dimension])
        for program, start in enumerate(operand.starts.tolist()):
            block: Any = hlo_interpreter._dynamic_slice(start, operand.block, indices, keep)
            found[program, dimension] = int(block.min())
    return found


def clamped_blocks(
    function: Callable[..., Any],
    *args: Any,
    alt: str,
    operand: int | str = 0,
    highlight: Sequence[Program | int] | None = None,
    names: Sequence[str] | None = None,
    index: int | None = None,
    scalars: Sequence[Any] = (),
) -> Figure:
    """Draw where an operand's blocks were asked for, and where `interpret=True` reads instead.

    The strip shows one dimension of the array, the one along which most requests are out of range.
    Dashed frames are the blocks that the index map asks for, coloured blocks are the ones that the
    interpreter reads; an arrow joins the two where they differ.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        alt: what the figure shows, for readers who cannot see it.
        operand: which one, by place (inputs, then outputs) or by name.
        highlight: up to six program ids; the first six programs if None.
        names: names of inputs and outputs; the kernel's argument names if None.
        index: which `pallas_call`, from 0, if there are several.
        scalars: values of prefetched scalars, if index maps read them.

    Raises:
        ValueError: as `block_ownership`; or if there is no such operand, or it is one number.
    """
    call = read_call(function, *args, index=index, names=names, scalars=scalars)
    known = [o.name for o in call.operands]
    if isinstance(operand, str) and operand not in known:
        raise ValueError(f"no operand {operand!r}; there are: {', '.join(known)}")
    place = known.index(operand) if isinstance(operand, str) else operand
    if not 0 <= place < len(known):
        raise ValueError(f"operand is {place}, but the call has {len(known)}")
    chosen = choose(call, call.programs[:HIGHLIGHTS] if highlight is None else highlight)
    drawn = call.operands[place]
    if not drawn.shape:
        raise ValueError(f"{drawn.name} is one number; no block of it can be out of range")
    got = read_starts(drawn)
    rows = [call.programs.index(program) for program in chosen]
    dimension = int(np.argmax((got != drawn.starts).sum(axis=0)))
    asked = [int(drawn.starts[r, dimension]) for r in rows]
    read = [int(got[r, dimension]) for r in rows]
    key = tuple(
        (swatch(i), f"program {program_name(p)}" + (f": reads {r}, not {a}" if r != a else ""))
        for i, (p, a, r) in enumerate(zip(chosen, asked, read, strict=True), start=1)
    )
    return Figure(
        alt=alt,
        panels=tuple(
            _strip(drawn, dimension, chosen, asked, read, width, show)
            for width, show in ((640.0, "wide"), (324.0, "narrow"))
        ),
        key=key,
    )


def _describe(
    drawn: Operand, dimension: int, chosen: Sequence[Program], asked: Sequence[int],
    read: Sequence[int],
) -> str:  # fmt: skip
    size = drawn.shape[dimension]
    sentences = [f"Dimension {dimension} of {drawn.name} has {size} elements."]
    for program, a, r in zip(chosen, asked, read, strict=True):
        who = f"Program {program_name(program)} asks for the block that starts at {a}"
        sentences.append(f"{who} and gets it." if a == r else f"{who} and gets the one at {r}.")
    return " ".join(sentences)


def _strip(
    drawn: Operand,
    dimension: int,
    chosen: Sequence[Program],
    asked: Sequence[int],
    read: Sequence[int],
    width: float,
    show: str,
) -> SVG:
    """One dimension from left to right: the array on top, a lane for each program below."""
    block = drawn.block[dimension]
    size = drawn.shape[dimension]
    first, last = min(0, *asked), max(size, *(a + block for a in asked))
    gutter = max(text_width(program_name(p), _LABEL, mono=True) for p in chosen) + 14
    scale = (width - gutter - 2) / (last - first)

    def at(element: float) -> float:
        return gutter + (element - first) * scale

    top, lane = 62.0, 34.0
    bottom = top + 14 + lane * len(chosen)
    body: list[Element] = [
        text(0, 14, drawn.name, size=15, weight=600, fill=colour("text"), mono=True),
        text(
            text_width(drawn.name, 15, mono=True) + 10,
            14,
            f"dimension {dimension}, {size} elements, blocks of {block}",
            size=13,
            fill=colour("muted"),
        ),
        el(
            "rect",
            x=at(0),
            y=top - 14,
            width=size * scale,
            height=bottom - top + 14,
            fill=colour("panel"),
        ),
    ]
    places = sorted({0, size, *asked})
    previous = -1000.0
    for place in places:
        words = str(place)
        if at(place) - previous < text_width(words, 10.5, mono=True) + 8:
            continue
        previous = at(place)
        body.append(
            text(previous, top - 20, words, size=10.5, fill=colour("muted"), mono=True,
                 anchor="middle" if 0 < place < last else None if place <= 0 else "end")
        )  # fmt: skip
    for owner, (program, a, r) in enumerate(zip(chosen, asked, read, strict=True), start=1):
        y = top + (owner - 1) * lane
        body.append(
            text(0, y + 16, program_name(program), size=_LABEL, weight=600, fill=colour("text"),
                 mono=True)
        )  # fmt: skip
        body.append(
            el("rect", x=at(r) + 1, y=y + 1, width=block * scale - 2, height=lane - 12, rx=2,
               fill=colour(f"fill-{owner}"), stroke=colour(str(owner)), stroke_width=2)
        )  # fmt: skip
        if a != r:
            body.extend(_moved(at(a), at(r), block * scale, y, lane, owner))
    body.append(
        el("path", d=f"M{number(at(0))} {number(top - 14)}V{number(bottom)}"
           f"M{number(at(size))} {number(top - 14)}V{number(bottom)}",
           stroke=colour("text"), stroke_width=1.5)
    )  # fmt: skip
    body.append(
        text(at(size) + 6, bottom - 2, "end of the array", size=11.5, fill=colour("muted"))
        if at(size) + 110 < width
        else text(at(size) - 6, bottom - 2, "end of the array", size=11.5, fill=colour("muted"),
                  anchor="end")
    )  # fmt: skip
    title = f"{drawn.name}: blocks asked for and blocks read"
    desc = _describe(drawn, dimension, chosen, asked, read)
    return SVG(width, bottom + 4, tuple(body), title, desc, show=show)


def _moved(
    asked: float, read: float, width: float, y: float, lane: float, owner: int
) -> list[Element]:
    """A dashed frame where the block was asked for, and an arrow to where it was read."""
    ink = colour(str(owner))
    middle = y + (lane - 10) / 2
    left = asked > read
    near = abs(asked - read) < width + 24
    start = asked + width / 2 if near else asked - 3 if left else asked + width + 3
    end = read + width / 2 if near else read + width + 5 if left else read - 5
    wing = 5 if left else -5
    return [
        el("rect", x=asked + 1, y=y + 1, width=width - 2, height=lane - 12, rx=2, fill="none",
           stroke=ink, stroke_width=1.5, stroke_dasharray="4 3"),
        el("path", d=f"M{number(start)} {number(middle)}H{number(end)}", stroke=ink,
           stroke_width=1.5),
        el("path", d=f"M{number(end + wing)} {number(middle - 5)}L{number(end)} {number(middle)}"
           f"L{number(end + wing)} {number(middle + 5)}", fill="none", stroke=ink,
           stroke_width=1.5, stroke_linecap="round", stroke_linejoin="round"),
    ]  # fmt: skip
