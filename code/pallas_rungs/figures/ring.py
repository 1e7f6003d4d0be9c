"""A ring of devices: which shares each of them holds after each step, and what has just come."""

from __future__ import annotations

from typing import Any

import numpy as np

from pallas_rungs.figures.svg import SVG, Element, Figure, el, number, text
from pallas_rungs.figures.theme import HIGHLIGHTS, colour

_SLOT = 22.0
_TOP = 24.0


def ring_steps(came: Any, *, alt: str, device: str = "device") -> Figure:
    """Draw a ring whose devices pass shares to the right, one row of devices for each step.

    A device's row of slots has a place for every share, by the device that it began at; those that
    it holds are filled, the one that came in this step has a thick frame. Arrows lead from the
    holder in the row above.

    Args:
        came: Integers of shape (steps + 1, devices): ``came[s][d]`` is the device at which the
            share began that device d received in step s; row 0 is what each has at the start.
        alt: what the figure shows, for readers who cannot see it.
        device: what a device is called, before its number.

    Raises:
        ValueError: ``came`` is no such table, names a device that is not there, or has more than
            six devices.
    """
    table = np.asarray(came)
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise ValueError("came must hold integers, a row for each step and a column a device")
    devices = table.shape[1]
    if not 2 <= devices <= HIGHLIGHTS:
        raise ValueError(f"came has {devices} devices; the figure shows 2 to {HIGHLIGHTS}")
    wrong = table[(table < 0) | (table >= devices)]
    if wrong.size:
        raise ValueError(f"came names device {wrong[0]}; there are {devices}, from 0")
    return Figure(
        alt=alt,
        panels=tuple(
            _drawn(table, device, width, show)
            for width, show in ((640.0, "wide"), (324.0, "narrow"))
        ),
    )


def _describe(table: np.ndarray[Any, Any]) -> str:
    sentences = []
    for step, row in enumerate(table.tolist()):
        for place, owner in enumerate(row):
            verb = "receives" if step else "starts with"
            sentences.append(f"Step {step}: device {place} {verb} share {owner}.")
    return " ".join(sentences)


def _drawn(table: np.ndarray[Any, Any], device: str, width: float, show: str) -> SVG:
    steps, devices = int(table.shape[0]), int(table.shape[1])
    gutter = 52.0 if show == "wide" else 18.0
    column = (width - gutter) / devices
    slot = min(_SLOT, (column - 8) / devices)
    row_height = slot + 34
    height = _TOP + steps * row_height - 24

    def left(place: float) -> float:
        return gutter + place * column + (column - devices * slot) / 2

    def top(step: int) -> float:
        return _TOP + step * row_height

    body: list[Element] = []
    for place in range(devices):
        name = f"{device} {place}" if show == "wide" else str(place)
        body.append(
            text(gutter + (place + 0.5) * column, 13, name, size=13, weight=600,
                 fill=colour("text"), anchor="middle")
        )  # fmt: skip
    for step in range(steps):
        label = f"step {step}" if show == "wide" else str(step)
        body.append(text(0, top(step) + slot / 2 + 4, label, size=12, fill=colour("muted")))
        for place in range(devices):
            held = set(table[: step + 1, place].tolist())
            for owner in range(devices):
                body.extend(
                    _slot(left(place) + owner * slot, top(step), slot, owner,
                          held=owner in held, new=step > 0 and owner == table[step, place])
                )  # fmt: skip
            if step:
                body.append(_arrow(place, devices, column, gutter, top(step - 1) + slot, top(step)))
    title = f"A ring of {devices} devices, {steps - 1} steps"
    return SVG(width, height, tuple(body), title, _describe(table), show=show)


def _slot(x: float, y: float, size: float, owner: int, *, held: bool, new: bool) -> list[Element]:
    """One share's place: empty, filled, or filled and framed because it has just come."""
    drawn = [
        el(
            "rect",
            x=x + 1,
            y=y,
            width=size - 2,
            height=size - 1,
            rx=2,
            fill=colour(f"fill-{owner + 1}") if held else "none",
            stroke=colour(str(owner + 1)) if held else colour("line"),
            stroke_width=2.5 if new else 1,
        )
    ]
    if held:
        drawn.append(
            text(x + size / 2, y + size / 2 + 4, str(owner), size=11.5,
                 weight=700 if new else None, fill=colour("text"), anchor="middle", mono=True)
        )  # fmt: skip
    return drawn


def _arrow(
    place: int, devices: int, column: float, gutter: float, above: float, below: float
) -> Element:
    """From the left neighbour in the row above; around the end for the first device."""
    end = gutter + (place + 0.5) * column
    tip = below - 4
    start = end - column
    middle = (above + below) / 2
    if place == 0:
        # Out of the picture on the right, back in on the left.
        far = gutter + (devices - 0.5) * column
        edge = gutter + devices * column - 2
        path = (
            f"M{number(far)} {number(above + 3)}Q{number(far)} {number(middle)} "
            f"{number(edge)} {number(middle)}"
            f"M{number(gutter)} {number(middle)}Q{number(end)} {number(middle)} "
            f"{number(end)} {number(tip)}"
        )
    else:
        path = (
            f"M{number(start)} {number(above + 3)}C{number(start)} {number(below)} "
            f"{number(end)} {number(above)} {number(end)} {number(tip)}"
        )
    wings = f"M{number(end - 4)} {number(tip - 5)}L{number(end)} {number(tip)}L{number(end + 4)} "
    return el("path", d=f"{path}{wings}{number(tip - 5)}", fill="none", stroke=colour("muted"),
              stroke_width=1.3)  # fmt: skip
