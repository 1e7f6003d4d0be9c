"""The ladder as a picture: kernels climb until the first rung that catches them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pallas_rungs.figures.climbers import Climber, Rows, climbers
from pallas_rungs.figures.glyphs import RUNG_SAYS, RUNGS, glyph, status_colour
from pallas_rungs.figures.ladder_matrix import ladder_matrix
from pallas_rungs.figures.svg import SVG, Element, Figure, el, number, text, text_width
from pallas_rungs.figures.tables import Table
from pallas_rungs.figures.theme import colour

_STEP = 21.0
"""Distance between the labels of kernels that end at the same height, in pixels."""


def ladder_picture(
    rows: Rows, *, alt: str, healthy: Collection[str] = (), style: str = "ladder"
) -> Figure | Table:
    """Draw the ladder with a kernel on each track, climbing to the first rung that catches it.

    A small check mark is a rung that the kernel passed. The large mark is the rung that caught it,
    with the status as a shape and a word. A rung that could not say anything has a dash. Rungs that
    no kernel was tried on are drawn dashed.

    Args:
        rows: name -> {rung: status}, or pairs of them; rungs and statuses by name.
        alt: what the figure shows, for readers who cannot see it.
        healthy: names of the kernels that are known to be right, so that passing everything is
            praise for them and a warning for the others.
        style: ``ladder`` for the picture, ``matrix`` for the table of `ladder_matrix`.

    Raises:
        ValueError: as `climbers`, or if there is no such style.
    """
    if style == "matrix":
        return ladder_matrix(rows, alt=alt, healthy=healthy)
    if style != "ladder":
        raise ValueError(f"style is {style!r}; it must be 'ladder' or 'matrix'")
    climbing = climbers(rows, healthy)
    tried = [rung for rung in RUNGS if any(rung in c.statuses for c in climbing)]
    desc = " ".join(
        f"{c.name}: {c.outcome}" + (f", first at {c.caught}." if c.caught else ".")
        for c in climbing
    )
    panels = (_wide(climbing, tried, desc), _narrow(climbing, tried, desc))
    return Figure(alt=alt, panels=panels)


@dataclass(frozen=True)
class _Frame:
    """Where things stand: rails, ground, and the height of each rung, in pixels.

    `roomy` is true if kernels are labelled on the ladder.
    """

    left: float
    right: float
    ground: float
    top: float
    rungs: Mapping[str, float]
    tracks: Sequence[float]
    roomy: bool


def _rung_heights(climbing: Sequence[Climber], top: str) -> dict[str, float]:
    """Heights of the rungs over the ground, with room above each for the labels that go there.

    Kernels caught by none have their labels above `top`, the highest rung tried.
    """
    heights: dict[str, float] = {}
    y = 62.0
    for rung in RUNGS:
        heights[rung] = y
        labels = sum(c.caught == rung for c in climbing)
        free = sum(c.caught is None for c in climbing) if rung == top else 0
        y += max(62.0, 32 + _STEP * labels + (_STEP * free + 18 if free else 0))
    heights["top"] = y
    return heights


def _wide(climbing: Sequence[Climber], tried: Sequence[str], desc: str) -> SVG:
    width, left = 760.0, 176.0
    right = width - 10
    words = text_width(f"{climbing[-1].name}  {climbing[-1].outcome}", 14)
    room = right - left - 60 - max(words, 190)
    step = min(34.0, room / max(len(climbing) - 1, 1))
    tracks = [left + 36 + i * step for i in range(len(climbing))]
    heights = _rung_heights(climbing, tried[-1])
    ground = (heights["top"] if tried[-1] == "chip" else heights["chip"] + 30) + 6
    rungs = {rung: ground - y for rung, y in heights.items()}
    frame = _Frame(left, right, ground, 6, rungs, tracks, roomy=True)
    body = [*_ladder(frame, tried, rail=9, bar=7)]
    for rung in RUNGS:
        y = rungs[rung]
        faint = rung not in tried
        ink = colour("muted") if faint else colour(f"rung-{rung}")
        says = "not tried here" if faint else RUNG_SAYS[rung]
        body.append(text(left - 20, y + 1, rung, size=16, weight=600, fill=ink, anchor="end"))
        body.append(text(left - 20, y + 18, says, size=12.5, fill=colour("muted"), anchor="end"))
    for climber, x in zip(climbing, tracks, strict=True):
        body.extend(_track(frame, climbing, climber, x, tried, mark=min(11, step * 0.47)))
    body.extend(_labels(frame, climbing, tried))
    return SVG(width, ground + 8, tuple(body), "The ladder of evidence", desc, show="wide")


def _narrow(climbing: Sequence[Climber], tried: Sequence[str], desc: str) -> SVG:
    width, left, right = 336.0, 92.0, 330.0
    ground = 46.0 * len(RUNGS) + 40
    rungs = {rung: ground - 46 * (i + 1) for i, rung in enumerate(RUNGS)}
    step = min(30.0, (right - left - 44) / max(len(climbing) - 1, 1))
    tracks = [left + 24 + i * step for i in range(len(climbing))]
    frame = _Frame(left, right, ground, rungs["chip"] - 26, rungs, tracks, roomy=False)
    body = [*_ladder(frame, tried, rail=7, bar=6)]
    for rung in RUNGS:
        ink = colour("muted") if rung not in tried else colour(f"rung-{rung}")
        body.append(
            text(left - 14, rungs[rung] + 5, rung, size=15, weight=600, fill=ink, anchor="end")
        )
    for climber, x in zip(climbing, tracks, strict=True):
        body.extend(_track(frame, climbing, climber, x, tried, mark=min(9.5, step * 0.55)))
    crowded = step < 19
    y = ground + (62 if crowded else 50)
    for place, (climber, x) in enumerate(zip(climbing, tracks, strict=True), start=1):
        under = ground + (33 if crowded and place % 2 == 0 else 21)
        body.append(
            text(x, under, str(place), size=12.5, weight=600, fill=colour("muted"),
                 anchor="middle")
        )  # fmt: skip
        body.append(
            text(18, y, str(place), size=14, weight=600, fill=colour("muted"), anchor="end")
        )
        for line in _wrapped(climber.name, width - 28, 14):
            body.append(text(28, y, line, size=14, fill=colour("text")))
            y += 18
        body.append(text(28, y, _outcome(climber), size=13, weight=600, fill=_ink(climber)))
        y += 25
    return SVG(width, y - 12, tuple(body), "The ladder of evidence", desc, show="narrow")


def _outcome(climber: Climber) -> str:
    return f"{climber.outcome} ({climber.caught})" if climber.caught else climber.outcome


def _ink(climber: Climber) -> str:
    if climber.caught is not None:
        return status_colour(climber.statuses[climber.caught])
    return colour("good") if climber.healthy else colour("warn")


def _wrapped(words: str, width: float, size: float) -> list[str]:
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _ladder(frame: _Frame, tried: Sequence[str], *, rail: float, bar: float) -> list[Element]:
    """Rails, rungs and the ground."""
    parts = [
        el(
            "path",
            d=f"M{number(frame.left - 34)} {number(frame.ground)}H{number(frame.right + 8)}",
            stroke=colour("strong"),
            stroke_width=1.5,
        )
    ]
    for rung in RUNGS:
        y = frame.rungs[rung]
        untried = rung not in tried
        parts.append(
            el(
                "path",
                d=f"M{number(frame.left)} {number(y)}H{number(frame.right)}",
                stroke=colour("strong") if untried else colour(f"rung-{rung}"),
                stroke_width=2 if untried else bar,
                stroke_dasharray="3 7" if untried else None,
                stroke_linecap="round",
                opacity=None if untried else "0.9",
            )
        )
    for x in (frame.left, frame.right):
        parts.append(
            el(
                "path",
                d=f"M{number(x)} {number(frame.ground)}V{number(frame.top)}",
                stroke=colour("text"),
                stroke_width=rail,
                stroke_linecap="round",
            )
        )
    return parts


def _track(
    frame: _Frame,
    climbing: Sequence[Climber],
    climber: Climber,
    x: float,
    tried: Sequence[str],
    *,
    mark: float,
) -> list[Element]:
    """One kernel's way up: its base, the rungs it passed, and where it was caught."""
    ink = _ink(climber)
    top = frame.rungs[climber.caught] if climber.caught else _above(frame, climbing, tried)
    parts = [
        el(
            "path",
            d=f"M{number(x)} {number(frame.ground - 5)}V{number(top)}",
            stroke=colour("ground"),
            stroke_width=6,
        ),
        el(
            "path",
            d=f"M{number(x)} {number(frame.ground - 5)}V{number(top)}",
            stroke=ink,
            stroke_width=2,
        ),
        el(
            "rect",
            x=x - 6,
            y=frame.ground - 11,
            width=12,
            height=12,
            rx=2.5,
            fill=colour("raised"),
            stroke=ink,
            stroke_width=2,
        ),
    ]
    for rung in RUNGS:
        status = climber.statuses.get(rung)
        if status is None:
            continue
        y = frame.rungs[rung]
        if rung == climber.caught:
            parts.append(
                el("circle", cx=x, cy=y, r=mark, fill=ink, stroke=colour("ground"), stroke_width=2)
            )
            parts.append(glyph(status, x, y, size=mark * 1.45, stroke=colour("ground")))
            break
        own = status_colour(status)
        parts.append(
            el(
                "circle", cx=x, cy=y, r=mark * 0.72, fill=colour("raised"), stroke=own,
                stroke_width=1.5,
            )
        )  # fmt: skip
        parts.append(glyph(status, x, y, size=mark * 1.05, stroke=own))
    if climber.caught is None:
        parts.append(
            el(
                "path",
                d=f"M{number(x - 5)} {number(top + 6)}L{number(x)} {number(top)}"
                f"L{number(x + 5)} {number(top + 6)}",
                fill="none",
                stroke=ink,
                stroke_width=2,
                stroke_linecap="round",
                stroke_linejoin="round",
            )
        )
    return parts


def _above(frame: _Frame, climbing: Sequence[Climber], tried: Sequence[str]) -> float:
    """Where an uncaught kernel's track ends: over the last rung tried and the labels there."""
    labels = sum(c.caught == tried[-1] for c in climbing)
    return frame.rungs[tried[-1]] - 24 - _STEP * labels * (1 if frame.roomy else 0)


def _labels(frame: _Frame, climbing: Sequence[Climber], tried: Sequence[str]) -> list[Element]:
    """Names beside where each kernel was caught, stepped so that none covers another's mark."""
    parts = []
    for i, (climber, x) in enumerate(zip(climbing, frame.tracks, strict=True)):
        after = sum(c.caught == climber.caught for c in climbing[i + 1 :])
        end = frame.rungs[climber.caught] - 12 if climber.caught else _above(frame, climbing, tried)
        y = end - (0 if climber.caught else 4) - _STEP * after
        ink = _ink(climber)
        if climber.caught or after:
            parts.append(
                el(
                    "path",
                    d=f"M{number(x)} {number(end)}V{number(y - 1)}Q{number(x)} {number(y - 5)} "
                    f"{number(x + 5)} {number(y - 5)}",
                    fill="none",
                    stroke=ink,
                    stroke_width=1.5,
                )
            )
        status = el("tspan", climber.outcome, dx=8, font_size=13, font_weight="600", fill=ink)
        room = frame.right - 14 - (x + 10) - 8 - text_width(climber.outcome, 13)
        name = _shortened(climber.name, room, 14)
        parts.append(text(x + 10, y, name, status, size=14, fill=colour("text")))
    return parts


def _shortened(words: str, width: float, size: float) -> str:
    """Cut words to a width, ending in an ellipsis; the description keeps them whole."""
    if text_width(words, size) <= width:
        return words
    letters = max(int(width / text_width("x", size)) - 1, 1)
    return words[:letters].rstrip() + "…"
