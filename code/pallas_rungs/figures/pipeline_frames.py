"""A pipeline frame by frame: what is on its way into each slot, in use, or on its way out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_rungs.figures.pipeline_schedule import (
    PROLOGUE,
    Block,
    Buffers,
    Move,
    PipelineSchedule,
    Transfer,
)
from pallas_rungs.figures.svg import SVG, Element, Figure, el, hatch, swatch, text, text_width
from pallas_rungs.figures.theme import colour

MOST_FRAMES = 12
"""More steps than this cannot be told apart at the width of a phone."""

_IN, _USE, _OUT = 1, 3, 2
_LANE = 25.0
_TOP = 22.0
_ENDS = 0.55  # width of prologue and epilogue, in steps
_BODY = (0.3, 0.75)  # where in a step the body begins and ends


@dataclass(frozen=True)
class Bar:
    """One block in one slot, as long as it is moved or used.

    Attributes:
        operand: whose block.
        slot: where in VMEM.
        block: its index.
        begin: where it begins, in steps; before 0 is the prologue.
        end: where it ends; after the last step is the epilogue.
        highlight: colour: on its way in, in use, or on its way out.
    """

    operand: str
    slot: int
    block: Block
    begin: float
    end: float
    highlight: int


def frame_bars(schedule: PipelineSchedule) -> tuple[Bar, ...]:
    """Return what is to be drawn, operand by operand, in order of time."""
    found: list[Bar] = []
    for buffers in schedule.buffers:
        transfers = schedule.transfers(buffers.name)
        found.extend(_moved(schedule, transfer) for transfer in transfers)
        found.extend(_used(schedule, buffers, transfers))
    return tuple(found)


def _moved(schedule: PipelineSchedule, transfer: Transfer) -> Bar:
    """A copy, from where its start is drawn to where the wait for it is."""
    begin, end = (_place(schedule, at) for at in (transfer.start, transfer.end))
    highlight = _IN if transfer.inwards else _OUT
    return Bar(transfer.operand, transfer.slot, transfer.block, begin, end, highlight)


def _place(schedule: PipelineSchedule, at: int) -> float:
    """Where a start or a wait is drawn: at an edge of the body of its step."""
    step, move = schedule.steps[at], schedule.moves[at]
    steps = math.prod(schedule.grid)
    begins = move.what == "start"
    if step == PROLOGUE:
        return -_ENDS if begins else 0.0
    if step == steps:
        return float(steps) if begins else steps + _ENDS
    body = schedule.steps.index(step) + _bodies_offset(schedule, step)
    if at < body:
        return step + (0.02 if begins else _BODY[0])
    return step + (_BODY[1] if begins else 0.98)


def _bodies_offset(schedule: PipelineSchedule, step: int) -> int:
    first = schedule.steps.index(step)
    return schedule.moves[first:].index(Move("body"))


def _used(
    schedule: PipelineSchedule, buffers: Buffers, transfers: Sequence[Transfer]
) -> Iterator[Bar]:
    """Each block from its first body to its last: inputs once awaited, outputs until sent."""
    steps = math.prod(schedule.grid)
    turns = [schedule.steps[t.end if buffers.inwards else t.start] for t in transfers]
    for i, (turn, transfer) in enumerate(zip(turns, transfers, strict=True)):
        if buffers.inwards:
            first = max(turn, 0)
            last = (turns[i + 1] if i + 1 < len(turns) else steps) - 1
        else:
            first = turns[i - 1] + 1 if i else 0
            last = min(turn, steps - 1)
        yield Bar(
            buffers.name, transfer.slot, transfer.block, first + _BODY[0], last + _BODY[1], _USE
        )


def pipeline_frames(schedule: PipelineSchedule, *, alt: str) -> Figure:
    """Draw a lane for each slot, and a column for each step of the grid.

    A step has the same width whatever happens in it: the axis is order, not time. The body is
    shaded.

    Args:
        schedule: what `pipeline_schedule` returned.
        alt: what the figure shows, for readers who cannot see it.

    Raises:
        ValueError: there are too many steps for a picture.
    """
    steps = math.prod(schedule.grid)
    if steps > MOST_FRAMES:
        raise ValueError(
            f"the grid {schedule.grid} has {steps} steps; a figure of more than {MOST_FRAMES} "
            "cannot be read. Draw a smaller grid."
        )
    return Figure(
        alt=alt,
        panels=tuple(
            _panel(schedule, width, show) for width, show in ((640.0, "wide"), (332.0, "narrow"))
        ),
        key=(
            (swatch(_IN), "on its way in, from the start of the copy to the wait for it"),
            (swatch(_USE), "the body uses it"),
            (swatch(_OUT), "on its way out"),
        ),
    )


def _lanes(schedule: PipelineSchedule) -> list[tuple[str, int]]:
    return [(b.name, slot) for b in schedule.buffers for slot in range(b.slots)]


def _panel(schedule: PipelineSchedule, width: float, show: str) -> SVG:
    lanes, drawn = _lanes(schedule), frame_bars(schedule)
    steps = math.prod(schedule.grid)
    wide = show == "wide"
    names = [f"{name}, slot {slot}" if wide else f"{name} {slot}" for name, slot in lanes]
    gutter = max(text_width(name, 12.5) for name in names) + 8
    step = (width - gutter - 2) / (steps + 2 * _ENDS)
    bottom = _TOP + _LANE * len(lanes)

    def x(at: float) -> float:
        return gutter + (at + _ENDS) * step

    body: list[Element] = [text(0, 12, "step", size=12, fill=colour("muted"))]
    for n in range(steps):
        left, right = x(n + _BODY[0]), x(n + _BODY[1])
        body.append(
            el("rect", x=left, y=_TOP - 4, width=right - left, height=bottom - _TOP + 4,
               fill=colour("panel"))
        )  # fmt: skip
        body.append(
            text((left + right) / 2, 12, str(n), size=12, fill=colour("muted"), anchor="middle",
                 mono=True)
        )  # fmt: skip
    for n, name in enumerate(names):
        y = _TOP + _LANE * n
        body.append(el("path", d=f"M{gutter:.1f} {y + _LANE - 1:.1f}H{width - 2:.1f}",
                       stroke=colour("line")))  # fmt: skip
        body.append(text(0, y + 16, name, size=12.5, fill=colour("text")))
    for bar in drawn:
        y = _TOP + _LANE * lanes.index((bar.operand, bar.slot))
        left, span = x(bar.begin), (bar.end - bar.begin) * step
        body.append(
            el("rect", x=left + 0.5, y=y + 2, width=max(span - 1, 1), height=_LANE - 6, rx=2,
               fill=colour(f"fill-{bar.highlight}"), stroke=colour(str(bar.highlight)),
               stroke_width=1.5)
        )  # fmt: skip
        if bar.highlight != _USE:
            body.append(
                el("path", d=hatch(left, y + 2, span, _LANE - 6), stroke=colour(str(bar.highlight)),
                   stroke_width=0.6)
            )  # fmt: skip
        label = ",".join(map(str, bar.block))
        if text_width(label, 11.5, mono=True) <= span:
            body.append(
                text(left + span / 2, y + 16, label, size=11.5, fill=colour("text"),
                     anchor="middle", mono=True,
                     halo=None if bar.highlight == _USE else colour(f"fill-{bar.highlight}"))
            )  # fmt: skip
    title = "Blocks in their slots, step by step"
    return SVG(width, bottom + 2, tuple(body), title, _describe(schedule, drawn), show=show)


def _describe(schedule: PipelineSchedule, drawn: Sequence[Bar]) -> str:
    words = {_IN: "on its way in", _USE: "in use", _OUT: "on its way out"}
    steps = math.prod(schedule.grid)

    def when(at: float) -> str:
        if at < 0:
            return "the prologue"
        return "the epilogue" if at >= steps else f"step {int(at)}"

    def told(bar: Bar) -> str:
        begin, end = when(bar.begin), when(max(bar.end - 0.01, bar.begin))
        span = f"in {begin}" if begin == end else f"from {begin} to {end}"
        return f"block {','.join(map(str, bar.block))} {words[bar.highlight]} {span}"

    return " ".join(
        f"{name}, slot {slot}: "
        + "; ".join(
            told(bar)
            for bar in sorted(drawn, key=lambda bar: bar.begin)
            if (bar.operand, bar.slot) == (name, slot)
        )
        + "."
        for name, slot in _lanes(schedule)
    )
