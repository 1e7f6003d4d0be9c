"""Draw one operand: the array, its blocks, who owns them, and what hangs over the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pallas_rungs.figures.calls import Call, Operand
from pallas_rungs.figures.plane import TICK, Plane, overhang, sizes, ticks, two
from pallas_rungs.figures.programs import Program, program_name, program_pattern, runs
from pallas_rungs.figures.svg import SVG, Element, el, number, text, text_width
from pallas_rungs.figures.theme import colour

MOST_SLICES = 4
"""An array of more than two dimensions is drawn as this many slices at most."""

_HEAD = 46.0
_LABEL = 12.0


@dataclass(frozen=True)
class _Block:
    """A block of the two drawn dimensions and the programs that get it, in order of visit."""

    first: tuple[int, int]
    programs: tuple[Program, ...]
    visits: tuple[int, ...]


def heading(operand: Operand) -> tuple[Element, ...]:
    """Name, type and block of an operand, over its drawing."""
    shape = ", ".join(map(str, operand.shape))
    kind = f"{operand.dtype}[{shape}]"
    name_width = text_width(operand.name, 15, mono=True)
    return (
        text(0, 14, operand.name, size=15, weight=600, fill=colour("text"), mono=True),
        text(name_width + 10, 14, kind, size=12, fill=colour("muted"), mono=True),
        text(0, 32, block_words(operand), size=13, fill=colour("muted")),
    )


def block_words(operand: Operand) -> str:
    """E.g. ``input, blocks of 128 × 64``; squeezed dimensions are written as None."""
    if operand.space == "any":
        return f"{operand.role}, left where it is"
    where = f" in {operand.space}" if operand.space else ""
    if not operand.shape:
        return f"{operand.role}{where}, one number"
    if operand.block == operand.shape and not any(operand.squeezed):
        return f"{operand.role}{where}, whole"
    block = " × ".join(
        "None" if squeezed else str(size)
        for size, squeezed in zip(operand.block, operand.squeezed, strict=True)
    )
    return f"{operand.role}{where}, blocks of {block}"


@dataclass(frozen=True)
class Panel:
    """The drawing of one operand, and whether some of it is hatched."""

    drawing: SVG
    hatched: bool


def array_panel(call: Call, operand: Operand, chosen: Sequence[Program], *, steps: bool) -> Panel:
    """Draw `operand` of `call`; blocks of the `chosen` programs are coloured, in that order."""
    block = two(operand.block, 1)
    extent = two(operand.shape, 1)
    slices = _slices(call, operand)
    corner = [b.first for blocks in slices.values() for b in blocks]
    reach = tuple(
        max(extent[d], *(c[d] + block[d] for c in corner if c[d] < extent[d]), 0) for d in (0, 1)
    )
    assert len(reach) == 2
    labels = {
        b: program_pattern(b.programs, call.grid) if call.grid else ""
        for blocks in slices.values()
        for b in blocks
    }
    widest = max((text_width(t, _LABEL, mono=True) for t in labels.values()), default=0.0)
    height, width = sizes((reach[0], reach[1]), block, widest)
    gutter = text_width(str(reach[0]), TICK, mono=True) + 8 if len(operand.shape) > 1 else 1.0
    body: list[Element] = list(heading(operand))
    y = _HEAD
    many = len(operand.shape) > 2
    for at, blocks in list(slices.items())[:MOST_SLICES]:
        if many:
            index = ", ".join([*map(str, at), ":", ":"])
            body.append(text(0, y + 12, f"[{index}]", size=12, fill=colour("text"), mono=True))
            y += 20
        plane = Plane(
            x=gutter,
            y=y + 16,
            scale=(height / reach[0], width / reach[1]),
            extent=extent,
            reach=(reach[0], reach[1]),
        )
        body.extend(_slice(plane, operand, block, blocks, labels, chosen, steps))
        y += 16 + height + 14
    if (hidden := len(slices) - MOST_SLICES) > 0:
        body.append(text(0, y + 8, f"and {hidden} more like these", fill=colour("muted")))
        y += 16
    head_width = max(
        text_width(operand.name, 15, mono=True)
        + 10
        + text_width(f"{operand.dtype}[{', '.join(map(str, operand.shape))}]", 12, mono=True),
        text_width(block_words(operand), 13),
    )
    drawing = SVG(
        width=max(gutter + width + 3, head_width),
        height=y - 8,
        body=tuple(body),
        title=f"{operand.name}: {operand.dtype}[{', '.join(map(str, operand.shape))}]",
        desc=describe(call, operand, chosen),
    )
    return Panel(drawing, hatched=(reach[0], reach[1]) != extent)


def describe(call: Call, operand: Operand, chosen: Sequence[Program]) -> str:
    """Say in words which elements of the operand each chosen program is given."""
    sentences = [f"{operand.name} is an {block_words(operand)}."]
    for program in chosen:
        start = operand.starts[call.programs.index(program)]
        ranges = ", ".join(
            f"{first} to {first + size - 1}" if size > 1 else str(first)
            for first, size in zip(start.tolist(), operand.block, strict=True)
        )
        who = f"Program {program_name(program)}" if call.grid else "The one program"
        sentences.append(f"{who} is given elements [{ranges}].")
    return " ".join(sentences)


def _slices(call: Call, operand: Operand) -> dict[tuple[int, ...], list[_Block]]:
    """Blocks of each drawn slice, by the leading indices of the slice."""
    visits: dict[tuple[int, ...], list[int]] = {}
    for step, start in enumerate(operand.starts.tolist()):
        visits.setdefault(tuple(start), []).append(step)
    slices: dict[tuple[int, ...], list[_Block]] = {}
    for start, at in sorted(visits.items()):
        block = _Block(two(start, 0), tuple(call.programs[s] for s in at), tuple(at))
        slices.setdefault(start[:-2], []).append(block)
    return slices


def _slice(
    plane: Plane,
    operand: Operand,
    block: tuple[int, int],
    blocks: Sequence[_Block],
    labels: dict[_Block, str],
    chosen: Sequence[Program],
    steps: bool,
) -> list[Element]:
    drawn: list[Element] = [_array_ground(plane)]
    inside = [
        b for b in blocks if all(0 <= f < e for f, e in zip(b.first, plane.extent, strict=True))
    ]
    disjoint = all(f % size == 0 for b in inside for f, size in zip(b.first, block, strict=True))
    shown = inside if disjoint else [b for b in inside if set(b.programs) & set(chosen)]
    if disjoint:
        for b in sorted(shown, key=lambda b: bool(set(b.programs) & set(chosen))):
            drawn.extend(_block(plane, b, block, labels[b], chosen, steps))
    else:
        drawn.extend(_overlapping(plane, block, shown, chosen))
    drawn.extend(overhang(plane))
    x, y, width, height = plane.box((0, 0), plane.extent)
    drawn.append(
        el(
            "rect",
            x=x,
            y=y,
            width=width,
            height=height,
            fill="none",
            stroke=colour("text"),
            stroke_width=1.5,
        )
    )
    drawn.extend(ticks(plane, [b.first for b in shown], rows=len(operand.shape) > 1))
    return drawn


def _array_ground(plane: Plane) -> Element:
    x, y, width, height = plane.box((0, 0), plane.extent)
    return el("rect", x=x, y=y, width=width, height=height, fill=colour("panel"))


def _block(
    plane: Plane,
    block: _Block,
    size: tuple[int, int],
    label: str,
    chosen: Sequence[Program],
    steps: bool,
) -> list[Element]:
    x, y, width, height = plane.box(block.first, size)
    owners = [i for i, program in enumerate(chosen, start=1) if program in block.programs]
    inset = 1.5 if owners else 0.5
    box = {"x": x + inset, "y": y + inset, "width": width - 2 * inset, "height": height - 2 * inset}
    parts: list[Element] = []
    if not owners:
        parts.append(el("rect", **box, fill=colour("raised"), stroke=colour("strong")))
    parts.extend(_shares(box, owners))
    x, y, width, height = _inside(plane, x, y, width, height)
    label, label_size = _fitted(label, width, height)
    order = (
        f"step {runs(block.visits)}" if len(block.visits) == 1 else f"steps {runs(block.visits)}"
    )
    two_lines = steps and height >= 34 and text_width(order, 10.5) + 4 <= width
    middle = y + height / 2 + (-2.5 if two_lines else 4)
    if label:
        ink = colour("text") if owners else colour("muted")
        weight = 600 if owners else None
        parts.append(
            text(x + width / 2, middle, label, size=label_size, fill=ink, weight=weight,
                 anchor="middle", mono=True)
        )  # fmt: skip
    if two_lines:
        parts.append(
            text(x + width / 2, middle + 15, order, size=10.5, fill=colour("muted"),
                 anchor="middle")
        )  # fmt: skip
    return parts


def _overlapping(
    plane: Plane, size: tuple[int, int], blocks: Sequence[_Block], chosen: Sequence[Program]
) -> list[Element]:
    """Blocks that overlap: a frame for each chosen program, every one a lane further in."""
    parts = []
    lane = min(34.0, plane.extent[1] * plane.scale[1] / (2 * len(chosen) + 1))
    pairs = [(i, p, b) for b in blocks for i, p in enumerate(chosen, 1) if p in b.programs]
    for turn, (owner, program, block) in enumerate(pairs):
        x, y, width, height = plane.box(block.first, size)
        inset = 2 + turn * lane
        box = {"x": x + inset, "y": y + 2, "width": width - inset - 2, "height": height - 4}
        parts.append(
            el("rect", **box, fill=colour(f"fill-{owner}"), fill_opacity="0.55",
               stroke=colour(str(owner)), stroke_width=2)
        )  # fmt: skip
        parts.append(
            text(x + inset + 7, y + height / 2 + 4, program_name(program), size=_LABEL,
                 fill=colour("text"), weight=600, mono=True)
        )  # fmt: skip
    return parts


def _fitted(label: str, width: float, height: float) -> tuple[str, float]:
    """The label and its size, made smaller if need be; an empty label if nothing fits."""
    close = label.replace(", ", ",")
    for words, size in ((label, _LABEL), (close, _LABEL), (close, 10.5)):
        if text_width(words, size, mono=True) + 4 <= width and height >= size + 3:
            return words, size
    return "", _LABEL


def _inside(plane: Plane, x: float, y: float, width: float, height: float) -> tuple[float, ...]:
    """The part of a box that lies in the array, where its label goes."""
    left, top, across, down = plane.box((0, 0), plane.extent)
    return x, y, min(width, left + across - x), min(height, top + down - y)


def _shares(box: dict[str, float], owners: Sequence[int]) -> list[Element]:
    """Divide a block between the colours of its owners: fills side by side in one frame."""
    parts = []
    share = box["width"] / max(len(owners), 1)
    y, bottom = box["y"], box["y"] + box["height"]
    for i, owner in enumerate(owners):
        x = box["x"] + i * share
        left = f"V{number(y)}" if i == 0 else f"M{number(x)} {number(y)}"
        right = f"V{number(bottom)}" if i == len(owners) - 1 else f"M{number(x + share)} "
        if i < len(owners) - 1:
            right += number(bottom)
        frame = f"M{number(x)} {number(bottom)}{left}H{number(x + share)}{right}H{number(x)}"
        parts.append(
            el("rect", x=x, y=y, width=share, height=box["height"], fill=colour(f"fill-{owner}"))
        )
        parts.append(el("path", d=frame, fill="none", stroke=colour(str(owner)), stroke_width=2))
    return parts
