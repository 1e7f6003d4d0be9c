"""Marks for what a rung said: a shape for each status, so that none is told by colour alone."""

from __future__ import annotations

from collections.abc import Mapping

from pallas_rungs.figures.svg import Element, el
from pallas_rungs.figures.theme import colour

# Status -> (theme colour, path on a 16 × 16 field, drawn with round strokes).
_SHAPES: dict[str, tuple[str, str]] = {
    "passed": ("good", "M3.6 8.4l3 3L12.6 4.8"),
    "unchecked": ("good", "M8 3.8a4.2 4.2 0 1 1 0 8.4a4.2 4.2 0 1 1 0-8.4z"),
    "wrong": ("bad", "M3.4 6.1h9.2M3.4 9.9h9.2M10.4 3.2L5.6 12.8"),
    "refused": ("bad", "M4.3 4.3l7.4 7.4M11.7 4.3l-7.4 7.4"),
    "no kernel": ("warn", "M8 3.6a4.4 4.4 0 1 1 0 8.8a4.4 4.4 0 1 1 0-8.8zM4 12L12 4"),
    "tool cannot": ("quiet", "M3.8 8h8.4"),
    "deadlocked": ("bad", "M5.6 4v8M10.4 4v8"),
    "timed out": ("bad", "M8 3.2a4.8 4.8 0 1 1 0 9.6a4.8 4.8 0 1 1 0-9.6zM8 5.4V8l1.9 1.3"),
    "crashed": ("bad", "M9.2 2.8L5.2 8.6h5L6.6 13.2"),
    "unavailable": ("quiet", "M4.2 8h.01M8 8h.01M11.8 8h.01"),
    "reference failed": ("warn", "M5.6 5.6a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.7M8 12.4h.01"),
}

STATUSES: tuple[str, ...] = tuple(_SHAPES)
"""Every status that has a mark."""

CAUGHT = frozenset({"wrong", "refused", "deadlocked", "timed out", "crashed"})
"""The statuses by which a rung blames the kernel."""

RUNGS: tuple[str, ...] = ("trace", "interpret", "simulate", "lower", "compile", "chip")
"""The ladder's rungs from the ground up."""

RUNG_SAYS: Mapping[str, str] = {
    "trace": "the body is legal",
    "interpret": "the arithmetic",
    "simulate": "memory, order, races",
    "lower": "shapes and types fit",
    "compile": "it fits, it compiles",
    "chip": "numbers and time",
}
"""What a pass on each rung is evidence of, in a few words."""


def check_status(status: str) -> str:
    """Return the plain status word.

    Raises:
        ValueError: if there is no such status.
    """
    word = str(status)
    if word not in _SHAPES:
        raise ValueError(f"no status {word!r}; there are: {', '.join(_SHAPES)}")
    return word


def status_colour(status: str) -> str:
    """CSS colour of a status."""
    return colour(_SHAPES[check_status(status)][0])


def glyph(status: str, x: float, y: float, *, size: float = 16, stroke: str = "") -> Element:
    """The mark of a status, centred on (x, y).

    Args:
        status: one of `STATUSES`.
        x: centre, in pixels.
        y: centre, in pixels.
        size: edge of the field it is drawn on, in pixels.
        stroke: CSS colour; the status's own if empty.
    """
    scale = size / 16
    return el(
        "path",
        d=_SHAPES[check_status(status)][1],
        transform=f"translate({x - size / 2:.1f} {y - size / 2:.1f}) scale({scale:.2f})",
        fill="none",
        stroke=stroke or status_colour(status),
        stroke_width=2,
        stroke_linecap="round",
        stroke_linejoin="round",
    )


def first_caught(statuses: Mapping[str, str]) -> str | None:
    """The lowest rung whose status blames the kernel, or None.

    Raises:
        ValueError: if a rung or a status is unknown.
    """
    for rung in statuses:
        if str(rung) not in RUNGS:
            raise ValueError(f"no rung {str(rung)!r}; there are: {', '.join(RUNGS)}")
    words = {str(rung): check_status(status) for rung, status in statuses.items()}
    return next((rung for rung in RUNGS if words.get(rung) in CAUGHT), None)
