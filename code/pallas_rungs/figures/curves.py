"""Curves of computed values over two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_rungs.figures.svg import SVG, Element, Figure, el, number, text, text_width
from pallas_rungs.figures.theme import HIGHLIGHTS, colour

_SIZE = 12.0
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MARKERS = ("circle", "square", "triangle", "diamond", "cross", "bar")


@dataclass(frozen=True)
class Curve:
    """One curve.

    Attributes:
        name: what it shows, for the key.
        x: where, positive numbers in rising order.
        y: the values there, positive.
        bound: it bounds the curve before it: drawn dashed, without markers, in that curve's colour.
        joined: its values are joined by lines; else each stands for itself, in any order.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    bound: bool = False
    joined: bool = True


def power_of_ten(exponent: int) -> str:
    """Write a power of ten as a reader does: 1, 10, then 10² and 10⁻³."""
    return {0: "1", 1: "10"}.get(exponent, "10" + str(exponent).translate(_SUPERSCRIPT))


def curves(
    curves: Sequence[Curve], *, x: str, y: str, alt: str, equal: str | None = None
) -> Figure:
    """Draw curves, or points, over two logarithmic axes.

    Curves are told apart by colour and by their markers; bounds are dashed.

    Args:
        curves: up to six, not counting bounds; a bound comes after the curve that it bounds.
        x: what the horizontal axis counts.
        y: what the vertical axis counts.
        alt: what the figure shows, for readers who cannot see it.
        equal: the name of a line on which both are equal, where one is to be drawn.

    Raises:
        ValueError: there is no curve, or more than six; a curve has no points, or fewer than the
            two that a line needs, or coordinates that no logarithm is defined for; the first curve
            is a bound.
    """
    for curve in curves:
        if len(curve.x) != len(curve.y) or len(curve.x) < (2 if curve.joined else 1):
            raise ValueError(
                f"{curve.name!r} has {len(curve.x)} places and {len(curve.y)} values: a curve "
                "needs two points, each with both"
            )
        wrong = [v for v in (*curve.x, *curve.y) if not (v > 0 and math.isfinite(v))]
        if wrong:
            raise ValueError(
                f"{curve.name!r} holds {wrong[0]}, and a logarithmic axis shows positive numbers"
            )
    if not curves or curves[0].bound:
        raise ValueError("a figure needs a curve, and a bound comes after the curve that it bounds")
    hues, hue = [], 0
    for curve in curves:
        hue += not curve.bound
        hues.append(hue)
    if hue > HIGHLIGHTS:
        raise ValueError(f"{hue} curves cannot be told apart; {HIGHLIGHTS} can")
    return Figure(
        alt=alt,
        panels=tuple(
            _plot(curves, hues, x, y, equal is not None, width, height, show)
            for width, height, show in ((640.0, 380.0, "wide"), (324.0, 340.0, "narrow"))
        ),
        key=(
            *((_key_mark(c, h), c.name) for c, h in zip(curves, hues, strict=True)),
            *([] if equal is None else [(_equal_mark(), equal)]),
        ),
    )


def decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the whole decades around positive values, at least one, as two exponents of ten."""
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = math.ceil(math.log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def _ticks(low: int, high: int, room: int) -> range:
    """Decades to name, at most `room` of them."""
    step = max(1, math.ceil((high - low) / max(1, room - 1)))
    return range(low, high + 1, step)


def _stroke(curve: Curve) -> dict[str, str | None]:
    return {"stroke_dasharray": "5 4" if curve.bound else None}


def marker(hue: int, x: float, y: float) -> Element:
    """Draw the marker of a colour, 1 to 6: each colour has a shape of its own."""
    shape = _MARKERS[hue - 1]
    ink = colour(str(hue))
    if shape == "circle":
        return el("circle", cx=x, cy=y, r=4, fill=ink)
    if shape == "square":
        return el("rect", x=x - 3.5, y=y - 3.5, width=7, height=7, fill=ink)
    drawn = {
        "triangle": ((0, -5), (4.5, 3.5), (-4.5, 3.5)),
        "diamond": ((0, -5), (5, 0), (0, 5), (-5, 0)),
        "cross": ((-4, -1), (-1, -1), (-1, -4), (1, -4), (1, -1), (4, -1), (4, 1), (1, 1), (1, 4),
                  (-1, 4), (-1, 1), (-4, 1)),
        "bar": ((-1.5, -5), (1.5, -5), (1.5, 5), (-1.5, 5)),
    }[shape]  # fmt: skip
    points = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in drawn)
    return el("polygon", points=points, fill=ink)


def _key_mark(curve: Curve, hue: int) -> Element:
    line = el("path", d="M0 8H30", stroke=colour(str(hue)), stroke_width=2, **_stroke(curve))
    lines = (line,) if curve.joined else ()
    marks = () if curve.bound else (marker(hue, 15, 8),)
    return el("svg", *lines, *marks, width=30, height=16, viewBox="0 0 30 16", aria_hidden="true")


def _equal_mark() -> Element:
    line = el("path", d="M0 14L30 2", stroke=colour("strong"), stroke_width=2)
    return el("svg", line, width=30, height=16, viewBox="0 0 30 16", aria_hidden="true")


def _describe(curves: Sequence[Curve], x: str, y: str) -> str:
    sentences = [f"{y}, against {x}; both axes are logarithmic."]
    for curve in curves:
        if not curve.joined:
            places = f"{min(curve.x):.3g} to {max(curve.x):.3g}"
            values = f"{min(curve.y):.3g} to {max(curve.y):.3g}"
            count = f"{len(curve.x)} points" if len(curve.x) > 1 else "one point"
            sentences.append(f"{curve.name}: {count}, from {values}, at {places}.")
            continue
        ends = f"from {curve.y[0]:.2g} at {curve.x[0]:g} to {curve.y[-1]:.2g} at {curve.x[-1]:g}"
        sentences.append(f"{curve.name}: {ends}.")
    return " ".join(sentences)


def _plot(
    curves: Sequence[Curve],
    hues: Sequence[int],
    x_label: str,
    y_label: str,
    equal: bool,
    width: float,
    height: float,
    show: str,
) -> SVG:
    x_low, x_high = decades([v for c in curves for v in c.x])
    y_low, y_high = decades([v for c in curves for v in c.y])
    y_ticks = _ticks(y_low, y_high, 9)
    x_ticks = _ticks(x_low, x_high, 8 if show == "wide" else 5)
    left = max(text_width(power_of_ten(t), _SIZE) for t in y_ticks) + 10
    top, right, bottom = 30.0, width - 12, height - 46

    def across(value: float) -> float:
        return left + (math.log10(value) - x_low) / (x_high - x_low) * (right - left)

    def up(value: float) -> float:
        return bottom - (math.log10(value) - y_low) / (y_high - y_low) * (bottom - top)

    muted, line = colour("muted"), colour("line")
    body: list[Element] = [text(0, 14, y_label, size=_SIZE, fill=muted)]
    for tick in y_ticks:
        y = up(10.0**tick)
        body.append(el("path", d=f"M{number(left)} {number(y)}H{number(right)}", stroke=line))
        body.append(text(left - 6, y + 4, power_of_ten(tick), size=_SIZE, fill=muted, anchor="end"))
    for tick in x_ticks:
        x = across(10.0**tick)
        body.append(el("path", d=f"M{number(x)} {number(top)}V{number(bottom)}", stroke=line))
        body.append(
            text(x, bottom + 18, power_of_ten(tick), size=_SIZE, fill=muted, anchor="middle")
        )
    body.append(
        text((left + right) / 2, height - 6, x_label, size=_SIZE, fill=muted, anchor="middle")
    )
    frame = f"M{number(left)} {number(top)}V{number(bottom)}H{number(right)}"
    body.append(el("path", d=frame, fill="none", stroke=colour("strong")))
    if equal:
        low, high = 10.0 ** max(x_low, y_low), 10.0 ** min(x_high, y_high)
        ends = f"M{number(across(low))} {number(up(low))}L{number(across(high))} {number(up(high))}"
        body.append(el("path", d=ends, stroke=colour("strong"), stroke_width=2))
    for curve, hue in zip(curves, hues, strict=True):
        points = [(across(a), up(b)) for a, b in zip(curve.x, curve.y, strict=True)]
        path = "M" + "L".join(f"{number(a)} {number(b)}" for a, b in points)
        ink = colour(str(hue))
        if curve.joined:
            body.append(
                el("path", d=path, fill="none", stroke=ink, stroke_width=2, **_stroke(curve))
            )
        if not curve.bound:
            body.extend(marker(hue, a, b) for a, b in points)
    return SVG(width, height, tuple(body), f"{y_label}", _describe(curves, x_label, y_label), show)
