"""When a kernel's copies are under way, and when it computes: one lane for each slot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from pallas_rungs.figures.copy_record import Copy, Place, Record
from pallas_rungs.figures.svg import SVG, Element, Figure, el, hatch, number, swatch, text
from pallas_rungs.figures.theme import colour

MOST_EVENTS = 96
"""More events than this cannot be told apart in one picture."""

_IN, _COMPUTE, _OUT = 1, 3, 2
_LANE = 26.0


@dataclass(frozen=True)
class Bar:
    """One copy, or one stretch of reads and writes.

    Attributes:
        lane: what its lane is called.
        words: the number of its block.
        start: the event in which it begins.
        end: the event in which it is over; the last one plus 1 if it never is.
        highlight: its colour, 1 to 6.
        awaited: false for a copy that nobody waits for.
    """

    lane: str
    words: str
    start: int
    end: int
    highlight: int
    awaited: bool = True


def bars(record: Record, *, core: int = 0) -> tuple[Bar, ...]:
    """Return what is to be drawn: copies in, then computation, then copies out.

    Args:
        record: what a run did.
        core: whose events to take.
    """
    copies = [c for c in record.copies if c.core == core]
    inwards = [c for c in copies if c.inwards]
    outwards = [c for c in copies if not c.inwards]
    return (
        *_copies(inwards, [c.target for c in inwards], "into", _IN, record.events),
        *(
            Bar("compute", str(i), first, last + 1, _COMPUTE)
            for i, (first, last) in enumerate(_stretches(record, core))
        ),
        *_copies(outwards, [c.source for c in outwards], "out of", _OUT, record.events),
    )


def _copies(
    copies: Sequence[Copy], places: Sequence[Place], way: str, highlight: int, events: int
) -> Iterator[Bar]:
    buffers = sorted({place.buffer for place in places})
    counts = dict.fromkeys(buffers, 0)
    found: list[Bar] = []
    for copy, place in zip(copies, places, strict=True):
        letter = ascii_lowercase[buffers.index(place.buffer)]
        of = f"{letter}, " if len(buffers) > 1 else ""
        slot = f"slot {place.starts[0]}" if place.starts else place.space.upper()
        end = events if copy.end is None else copy.end
        block = str(counts[place.buffer])
        counts[place.buffer] += 1
        found.append(
            Bar(f"{way} {of}{slot}", block, copy.start, end, highlight, copy.end is not None)
        )
    yield from sorted(found, key=lambda bar: (bar.lane, bar.start))


def _stretches(record: Record, core: int) -> list[tuple[int, int]]:
    """First and last event of each run of reads and writes that nothing else interrupts."""
    stretches: list[tuple[int, int]] = []
    for access in record.accesses:
        if access.core != core:
            continue
        if stretches and access.at == stretches[-1][1] + 1:
            stretches[-1] = (stretches[-1][0], access.at)
        else:
            stretches.append((access.at, access.at))
    return stretches


def copy_schedule(record: Record, *, alt: str, core: int = 0) -> Figure:
    """Draw which copies are under way at each event of a run, slot by slot.

    The horizontal axis counts events (a copy started, a wait, a read, a write). It is no time: no
    rung without a chip knows how long a copy takes.

    Args:
        record: what `record_of` returned.
        alt: what the figure shows, for readers who cannot see it.
        core: whose events to draw.

    Raises:
        ValueError: there are no copies, or too many events for a picture.
    """
    drawn = bars(record, core=core)
    if not any(c.core == core for c in record.copies):
        raise ValueError(f"core {core} started no copies, so there is no schedule to draw")
    if record.events > MOST_EVENTS:
        raise ValueError(
            f"the run has {record.events} events; a figure of more than {MOST_EVENTS} cannot be "
            "read. Draw fewer blocks."
        )
    return Figure(
        alt=alt,
        panels=tuple(
            _panel(drawn, record.events, width, show)
            for width, show in ((640.0, "wide"), (332.0, "narrow"))
        ),
        key=(
            (swatch(_IN), "copy from HBM to VMEM, from start to wait"),
            (swatch(_COMPUTE), "the kernel reads and writes VMEM"),
            (swatch(_OUT), "copy from VMEM to HBM, from start to wait"),
        ),
    )


def _describe(drawn: Sequence[Bar]) -> str:
    lanes = dict.fromkeys(bar.lane for bar in drawn)
    return " ".join(
        f"Lane {lane}: "
        + "; ".join(
            f"block {bar.words} from event {bar.start} "
            + (f"to {bar.end}" if bar.awaited else "and never awaited")
            for bar in drawn
            if bar.lane == lane
        )
        + "."
        for lane in lanes
    )


def _panel(drawn: Sequence[Bar], events: int, width: float, show: str) -> SVG:
    lanes = list(dict.fromkeys(bar.lane for bar in drawn))
    gutter = 88.0
    step = (width - gutter - 2) / events
    bottom = 8 + _LANE * len(lanes)
    body: list[Element] = []
    for i, lane in enumerate(lanes):
        y = 8 + _LANE * i
        body.append(
            el("rect", x=gutter, y=y, width=width - gutter - 2, height=_LANE - 4,
               fill=colour("panel"))
        )  # fmt: skip
        body.append(text(0, y + 16, lane, size=12.5, fill=colour("text")))
    for bar in drawn:
        x, y = gutter + bar.start * step, 8 + _LANE * lanes.index(bar.lane)
        wide = (bar.end - bar.start) * step
        body.append(
            el("rect", x=x + 0.5, y=y + 1, width=max(wide - 1, 1), height=_LANE - 6, rx=2,
               fill=colour(f"fill-{bar.highlight}"), stroke=colour(str(bar.highlight)),
               stroke_width=1.5, stroke_dasharray=None if bar.awaited else "4 3")
        )  # fmt: skip
        if not bar.awaited:
            body.append(
                el("path", d=hatch(x, y + 1, wide, _LANE - 6), stroke=colour(str(bar.highlight)))
            )
        body.append(
            text(x + wide / 2, y + 16, bar.words, size=12, fill=colour("text"), anchor="middle",
                 mono=True)
        )  # fmt: skip
    end = width - 2
    body.append(
        el("path", d=f"M{number(gutter)} {number(bottom + 6)}H{number(end)}"
           f"M{number(end - 6)} {number(bottom + 2)}L{number(end)} {number(bottom + 6)}"
           f"L{number(end - 6)} {number(bottom + 10)}", fill="none", stroke=colour("muted"))
    )  # fmt: skip
    body.append(
        text(end, bottom + 23, "order of events, not time", size=12, fill=colour("muted"),
             anchor="end")
    )  # fmt: skip
    return SVG(width, bottom + 28, tuple(body), "Copies and computation, slot by slot",
               _describe(drawn), show=show)  # fmt: skip
