"""Horizontal bars in parts, one row for each thing that is compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pallas_rungs.figures.svg import SVG, Element, Figure, el, swatch, text, text_width
from pallas_rungs.figures.theme import HIGHLIGHTS, colour

_ROW = 50.0
_BAR = 18.0
_LABEL = 13.0
_VALUE = 12.0


def bars(
    rows: Mapping[str, Sequence[float]],
    *,
    parts: Sequence[str],
    unit: str,
    title: str,
    alt: str,
    mark: float | None = None,
) -> Figure:
    """Draw a bar in parts for each row, its total beside it.

    Args:
        rows: Name of each row and its parts' lengths, in one unit, none negative.
        parts: Names of the parts, for the key.
        unit: What stands behind each total, for instance ``"×"``.
        title: Name of the drawing, one short phrase.
        alt: What the figure shows, for readers who cannot see it.
        mark: Where to draw a line across every bar, if anywhere.

    Raises:
        ValueError: There are no rows, too many parts, a row has another number of parts, or a
            length is negative or not finite.
    """
    if not rows:
        raise ValueError("bars need at least one row")
    if not 1 <= len(parts) <= HIGHLIGHTS:
        raise ValueError(f"there are {len(parts)} parts, and colours for 1 to {HIGHLIGHTS}")
    for name, lengths in rows.items():
        if len(lengths) != len(parts):
            raise ValueError(f"row {name!r} has {len(lengths)} parts, and there are {len(parts)}")
        if not all(math.isfinite(length) and length >= 0 for length in lengths):
            raise ValueError(f"row {name!r} has a length that no bar can show: {tuple(lengths)}")
    return Figure(
        alt=alt,
        panels=tuple(
            _panel(rows, parts, unit, title, mark, width, show)
            for width, show in ((640.0, "wide"), (324.0, "narrow"))
        ),
        key=tuple((swatch(place), name) for place, name in enumerate(parts, start=1)),
    )


def _panel(
    rows: Mapping[str, Sequence[float]],
    parts: Sequence[str],
    unit: str,
    title: str,
    mark: float | None,
    width: float,
    show: str,
) -> SVG:
    totals = {name: f"{_short(sum(lengths))} {unit}" for name, lengths in rows.items()}
    room = 12 + max(text_width(total, _VALUE, mono=True) for total in totals.values())
    longest = max([sum(lengths) for lengths in rows.values()] + [mark or 0.0]) or 1.0
    scale = (width - room) / longest
    body: list[Element] = []
    for place, (name, lengths) in enumerate(rows.items()):
        top = place * _ROW
        body.append(text(0, top + 15, name, size=_LABEL, fill=colour("text")))
        x = 0.0
        for number, length in enumerate(lengths, start=1):
            body.append(
                el("rect", x=x, y=top + 22, width=length * scale, height=_BAR,
                   fill=colour(f"fill-{number}"), stroke=colour(str(number)))
            )  # fmt: skip
            x += length * scale
        body.append(
            text(x + 8, top + 22 + _BAR - 5, totals[name], size=_VALUE, fill=colour("muted"),
                 mono=True)
        )  # fmt: skip
        if mark is not None:
            body.append(
                el("line", x1=mark * scale, x2=mark * scale, y1=top + 19, y2=top + 25 + _BAR,
                   stroke=colour("text"), stroke_width=2)
            )  # fmt: skip
    told = (
        f"{name}: "
        + ", ".join(f"{_short(n)} {part}" for part, n in zip(parts, lengths, strict=True))
        for name, lengths in rows.items()
    )
    return SVG(width, len(rows) * _ROW, tuple(body), title, "; ".join(told) + ".", show=show)


def _short(value: float) -> str:
    return f"{value:.3g}"
