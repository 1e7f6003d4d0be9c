"""Rooflines: a drawing for each chip, with the bounds of kernels as points on its roof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_rungs.figures.curves import decades, marker, power_of_ten
from pallas_rungs.figures.svg import SVG, Element, Figure, el, mark, number, text, text_width
from pallas_rungs.figures.theme import HIGHLIGHTS, colour

_SIZE = 12.0
_WIDTH, _HEIGHT = 304.0, 250.0


@dataclass(frozen=True)
class Roof:
    """Two limits of a chip.

    Attributes:
        name: the chip.
        rate: operations a second.
        bandwidth: bytes a second.
    """

    name: str
    rate: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """Operations for each byte where the two limits meet."""
        return self.rate / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the operations a second that the limits allow at so many a byte."""
        return min(self.rate, intensity * self.bandwidth)


def rooflines(roofs: Sequence[Roof], points: Sequence[tuple[str, float]], *, alt: str) -> Figure:
    """Draw the roof of each chip over the same two logarithmic axes.

    A point lies on the roof: it is a bound, and nothing was measured.

    Args:
        roofs: one drawing each.
        points: name and operations for each byte of at most six kernels.
        alt: what the figure shows, for readers who cannot see it.

    Raises:
        ValueError: there is no roof, no point or more than six; a number is not positive.
    """
    if not roofs or not points:
        raise ValueError("a roofline needs a roof and a point")
    if len(points) > HIGHLIGHTS:
        raise ValueError(f"{len(points)} points cannot be told apart; {HIGHLIGHTS} can")
    numbers = [x for _, x in points] + [v for r in roofs for v in (r.rate, r.bandwidth)]
    wrong = [v for v in numbers if not (v > 0 and math.isfinite(v))]
    if wrong:
        raise ValueError(f"a rate or intensity is {wrong[0]}, and these axes show positive numbers")
    across = decades([x for _, x in points] + [4 * roof.ridge for roof in roofs])
    up = decades([r.at(x) for r in roofs for x in (10.0 ** across[0], 10.0 ** across[1])])
    return Figure(
        alt=alt,
        panels=tuple(_panel(roof, points, across, up) for roof in roofs),
        key=tuple((mark(marker(i, 8, 8)), name) for i, (name, _) in enumerate(points, 1)),
    )


def _panel(
    roof: Roof,
    points: Sequence[tuple[str, float]],
    decades_x: tuple[int, int],
    decades_y: tuple[int, int],
) -> SVG:
    (x_low, x_high), (y_low, y_high) = decades_x, decades_y
    left = max(text_width(power_of_ten(t), _SIZE) for t in range(y_low, y_high + 1)) + 10
    top, right, bottom = 44.0, _WIDTH - 16, _HEIGHT - 40

    def across(value: float) -> float:
        return left + (math.log10(value) - x_low) / (x_high - x_low) * (right - left)

    def up(value: float) -> float:
        return bottom - (math.log10(value) - y_low) / (y_high - y_low) * (bottom - top)

    muted, line, ink = colour("muted"), colour("line"), colour("text")
    body: list[Element] = [
        text(0, 14, roof.name, size=14, fill=ink, weight=600),
        text(0, 32, "operations a second, at most", size=_SIZE, fill=muted),
    ]
    for tick in range(y_low, y_high + 1):
        y = up(10.0**tick)
        body.append(el("path", d=f"M{number(left)} {number(y)}H{number(right)}", stroke=line))
        body.append(text(left - 6, y + 4, power_of_ten(tick), size=_SIZE, fill=muted, anchor="end"))
    for tick in range(x_low, x_high + 1):
        x = across(10.0**tick)
        body.append(el("path", d=f"M{number(x)} {number(top)}V{number(bottom)}", stroke=line))
        body.append(
            text(x, bottom + 16, power_of_ten(tick), size=_SIZE, fill=muted, anchor="middle")
        )
    body.append(
        text(
            (left + right) / 2,
            _HEIGHT - 6,
            "operations for each byte",
            size=_SIZE,
            fill=muted,
            anchor="middle",
        )
    )
    frame = f"M{number(left)} {number(top)}V{number(bottom)}H{number(right)}"
    body.append(el("path", d=frame, fill="none", stroke=colour("strong")))
    corner = across(roof.ridge)
    body.append(
        el(
            "path",
            d=f"M{number(corner)} {number(up(roof.rate))}V{number(bottom)}",
            stroke=colour("strong"),
            stroke_dasharray="4 3",
        )
    )
    body.append(
        text(
            corner - 5,
            bottom - 8,
            f"ridge {roof.ridge:.0f}",
            size=_SIZE,
            fill=ink,
            anchor="end",
            halo=colour("ground"),
        )
    )
    ends = (10.0**x_low, roof.ridge, 10.0**x_high)
    path = "M" + "L".join(f"{number(across(x))} {number(up(roof.at(x)))}" for x in ends)
    body.append(el("path", d=path, fill="none", stroke=ink, stroke_width=2))
    for i, (_, intensity) in enumerate(points, 1):
        body.append(marker(i, across(intensity), up(roof.at(intensity))))
    return SVG(_WIDTH, _HEIGHT, tuple(body), f"Roofline of {roof.name}", _describe(roof, points))


def _describe(roof: Roof, points: Sequence[tuple[str, float]]) -> str:
    sentences = [
        f"The roof rises with the operations for each byte up to {roof.ridge:.0f}, and is level at "
        f"{roof.rate:.3g} operations a second from there. Both axes are logarithmic."
    ]
    for name, intensity in points:
        side = "left of" if intensity < roof.ridge else "right of"
        share = roof.at(intensity) / roof.rate
        sentences.append(
            f"{name}, {intensity:.3g} a byte, is {side} the ridge: at most {share:.2%}."
        )
    return " ".join(sentences)
