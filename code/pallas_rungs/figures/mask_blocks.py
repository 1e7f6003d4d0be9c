"""The blocks of a mask, in three classes: empty, partial, full; each square is one program's block.

What a block is, is told by its pattern as well as by its colour: empty squares are bare, partial
ones hatched, full ones filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pallas_rungs.figures.svg import SVG, Element, Figure, el, hatch, mark, text, text_width
from pallas_rungs.figures.theme import colour

CLASSES = ("empty", "partial", "full")
"""Names of the classes 0, 1 and 2."""

_CELL, _GAP = 22.0, 2.0
_TOP, _SIZE, _SMALL = 44.0, 14.0, 12.0


@dataclass(frozen=True)
class MaskBlocks:
    """One mask.

    Attributes:
        name: what it is called.
        classes: the class of each block, 0, 1 or 2, in rows of equal length.
        labels: what stands in each block, two letters at most, in rows as `classes`.
    """

    name: str
    classes: Sequence[Sequence[int]]
    labels: Sequence[Sequence[str]] = ()


def mask_blocks(
    masks: Sequence[MaskBlocks],
    *,
    alt: str,
    across: str = "blocks of keys",
    down: str = "blocks of queries",
) -> Figure:
    """Draw the classes of blocks of some masks side by side.

    Args:
        masks: one drawing each.
        alt: what the figure shows, for readers who cannot see it.
        across: what the columns are.
        down: what the rows are.

    Raises:
        ValueError: there is no mask; one has no block, rows of different lengths, a class that is
            not 0, 1 or 2, or labels of another shape.
    """
    if not masks:
        raise ValueError("a picture of masks needs at least one")
    for one in masks:
        shape = [len(row) for row in one.classes]
        if not shape or not shape[0] or len(set(shape)) != 1:
            raise ValueError(f"the mask {one.name!r} has rows of {shape} blocks, not a rectangle")
        for row in one.classes:
            for found in row:
                if found not in (0, 1, 2):
                    raise ValueError(f"the mask {one.name!r} has a block of class {found}")
        if one.labels and [len(row) for row in one.labels] != shape:
            raise ValueError(f"the mask {one.name!r} has labels of another shape than its blocks")
    return Figure(
        alt=alt,
        panels=tuple(_panel(one, across, down) for one in masks),
        key=tuple((mark(*_block(number, 1, 1, 14)), name) for number, name in enumerate(CLASSES)),
    )


def _panel(one: MaskBlocks, across: str, down: str) -> SVG:
    rows, columns = len(one.classes), len(one.classes[0])
    counts = [sum(list(row).count(number) for row in one.classes) for number in range(3)]
    total = ", ".join(f"{n} {name}" for n, name in zip(counts, CLASSES, strict=True))
    body: list[Element] = [
        text(0, 14, one.name, size=_SIZE, fill=colour("text"), weight=600),
        text(0, 34, total, size=_SMALL, fill=colour("muted")),
    ]
    for i, row in enumerate(one.classes):
        for j, found in enumerate(row):
            x, y = j * (_CELL + _GAP), _TOP + i * (_CELL + _GAP)
            body += _block(found, x, y, _CELL)
            if one.labels:
                body.append(
                    text(
                        x + _CELL / 2,
                        y + _CELL / 2 + 4,
                        one.labels[i][j],
                        size=_SMALL,
                        fill=colour("text"),
                        anchor="middle",
                        halo=colour("ground") if found == 1 else None,
                    )
                )
    width = max(columns * (_CELL + _GAP), text_width(total, _SMALL), text_width(one.name, _SIZE))
    told = " ".join(
        f"{down} {i}: " + ", ".join(_said(one, i, j) for j in range(columns)) + "."
        for i in range(rows)
    )
    return SVG(
        width + 2,
        _TOP + rows * (_CELL + _GAP) + 2,
        tuple(body),
        f"{one.name}: {total}",
        f"{rows} {down} by {columns} {across}. {told}",
    )


def _said(one: MaskBlocks, i: int, j: int) -> str:
    name = CLASSES[one.classes[i][j]]
    return f"{name} ({one.labels[i][j]})" if one.labels and one.labels[i][j] else name


def _block(found: int, x: float, y: float, size: float) -> list[Element]:
    look: dict[str, str | float | None] = {"x": x + 0.5, "y": y + 0.5, "rx": 2}
    look |= {"width": size - 1, "height": size - 1}
    if found == 0:
        return [el("rect", **look, fill="none", stroke=colour("line"))]
    if found == 2:
        return [el("rect", **look, fill=colour("fill-1"), stroke=colour("1"))]
    return [
        el("rect", **look, fill="none", stroke=colour("2")),
        el("path", d=hatch(x + 1, y + 1, size - 2, size - 2, step=5), stroke=colour("2")),
    ]
