"""A source file as one bar, from its first to its last line: what a page says of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from pallas_rungs.figures.svg import SVG, Element, Figure, el, hatch, mark, number, text, text_width
from pallas_rungs.figures.theme import colour

_LOOKS = {
    "explained": ("fill-1", "1", "plain"),
    "folded": ("fill-3", "3", "hatched"),
    "skipped": ("fill-2", "2", "dotted"),
    "blank, comments": ("panel", "strong", "plain"),
    "imports": ("fill-5", "5", "ruled"),
    "unaccounted": ("bad-bg", "bad", "crossed"),
}
"""Class of a line: fill, stroke, pattern."""

_SAID = ("explained", "folded", "skipped", "unaccounted")
"""The classes that a page decides, whose shares stand beside a part's name."""

_HEIGHT = 560.0
_LEAST = 0.4
_ROW = 16.0
_OUT = 8.0
_NUMBER = 28.0
_LABEL = 12.0
_SMALL = 11.0


def file_account(
    classes: Sequence[str],
    parts: Sequence[tuple[str, int, int]],
    *,
    title: str,
    alt: str,
) -> Figure:
    """Draw a file's lines from top to bottom, each in the pattern of its class.

    A run of lines that nobody accounts for sticks out on the left, however short it is. Blank lines
    and comments between two lines of one class are drawn with these; the key counts them apart.

    Args:
        classes: the class of each line, in order: ``explained``, ``folded``, ``skipped``,
            ``blank, comments``, ``imports`` or ``unaccounted``.
        parts: name, first and last line (from 1, both included) of functions and classes, in
            order; those with room for it get their name.
        title: Name of the drawing, one short phrase.
        alt: What the figure shows, for readers who cannot see it.

    Raises:
        ValueError: There are no lines, a class is not one of these, or a part is not in the file.
    """
    if not classes:
        raise ValueError("a file without lines has no picture")
    if unknown := sorted(set(classes) - set(_LOOKS)):
        raise ValueError(f"class {unknown[0]!r} of a line is not one of: {', '.join(_LOOKS)}")
    for name, first, last in parts:
        if not 1 <= first <= last <= len(classes):
            raise ValueError(
                f"part {name!r} has lines {first} to {last}, and the file has {len(classes)}"
            )
    counts = Counter(classes)
    return Figure(
        alt=alt,
        panels=tuple(
            _panel(classes, parts, title, width, bar, show)
            for width, bar, show in ((640.0, 96.0, "wide"), (324.0, 44.0, "narrow"))
        ),
        key=tuple(
            (_swatch(name), f"{name}: {counts[name]} lines, {counts[name] / len(classes):.1%}")
            for name in _LOOKS
            if counts[name]
        ),
    )


def _panel(
    classes: Sequence[str],
    parts: Sequence[tuple[str, int, int]],
    title: str,
    width: float,
    bar: float,
    show: str,
) -> SVG:
    scale = min(max(_HEIGHT / len(classes), _LEAST), _ROW)
    wide = show == "wide"
    left = _NUMBER + _OUT + 6
    body: list[Element] = []
    for name, first, last in _runs(classes):
        out = _OUT if name == "unaccounted" else 0.0
        height = (last - first + 1) * scale
        body += _block(name, left - out, (first - 1) * scale, bar + out, height)
    named = [name for name, first, last in parts if (last - first + 1) * scale >= _ROW]
    longest = max((text_width(name, _LABEL, mono=True) for name in named), default=0.0)
    column = left + bar + 8 + longest + 14
    told = []
    for name, first, last in parts:
        inside = Counter(classes[first - 1 : last])
        said = ", ".join(f"{inside[kind]} {kind}" for kind in _LOOKS if inside[kind])
        told.append(f"{name}, lines {first} to {last}: {said}")
        top = (first - 1) * scale
        if (last - first + 1) * scale < _ROW:
            continue
        x = left + bar + 8
        size = _LABEL if wide else _SMALL
        shown = _shortened(name, width - x, size)
        place = left - _OUT - 4
        body += [
            el("line", x1=place + 2, x2=x - 2, y1=top, y2=top, stroke=colour("text")),
            text(place, top + 11, str(first), size=_SMALL, fill=colour("muted"), anchor="end",
                 mono=True),
            text(x, top + 12, shown, size=size, fill=colour("text"), mono=True),
        ]  # fmt: skip
        shares = ", ".join(
            f"{inside[kind] / (last - first + 1):.0%} {kind}" for kind in _SAID if inside[kind]
        )
        if wide and column + text_width(shares, _SMALL) <= width:
            body.append(text(column, top + 12, shares, size=_SMALL, fill=colour("muted")))
    desc = f"{len(classes)} lines. " + "; ".join(told) + "."
    return SVG(width, len(classes) * scale + 2, tuple(body), title, desc, show=show)


def _shortened(name: str, room: float, size: float) -> str:
    """The name, or its beginning and an ellipsis where it is wider than its room."""
    most = int(room / text_width("m", size, mono=True))
    return name if len(name) <= most else name[: most - 1] + "…"


def _runs(classes: Sequence[str]) -> list[tuple[str, int, int]]:
    """Runs of one class as (class, first line, last line), short gaps of blank lines closed."""
    blank = "blank, comments"
    runs: list[tuple[str, int, int]] = []
    line = 1
    for name, group in groupby(classes):
        n = len(list(group))
        runs.append((name, line, line + n - 1))
        line += n
    closed: list[tuple[str, int, int]] = []
    for run in runs:
        if len(closed) > 1 and closed[-1][0] == blank and closed[-2][0] == run[0]:
            closed.pop()
            name, first, _ = closed.pop()
            closed.append((name, first, run[2]))
        else:
            closed.append(run)
    return closed


def _block(name: str, x: float, y: float, width: float, height: float) -> list[Element]:
    fill, stroke, pattern = _LOOKS[name]
    drawn = [el("rect", x=x, y=y, width=width, height=height, fill=colour(fill))]
    line = colour(stroke)
    path = ""
    if pattern in ("hatched", "crossed"):
        path = hatch(x, y, width, height, step=6)
    if pattern == "crossed":
        path += "".join(
            f"M{number(x + at)} {number(y)}v{number(height)}" for at in _steps(width, 6)
        )
    if pattern == "ruled":
        path = "".join(f"M{number(x)} {number(y + at)}h{number(width)}" for at in _steps(height, 4))
    if pattern == "dotted":
        path = "".join(
            f"M{number(x + across)} {number(y + down)}h2"
            for down in _steps(height, 5)
            for across in _steps(width - 2, 8)
        )
    if path:
        thick = 2 if pattern == "dotted" else 1
        drawn.append(el("path", d=path, stroke=line, stroke_width=thick, fill="none"))
    drawn.append(
        el("rect", x=x, y=y, width=width, height=height, fill="none", stroke=line, stroke_width=0.8)
    )
    return drawn


def _steps(length: float, step: float) -> list[float]:
    return [step / 2 + i * step for i in range(int((length - step / 2) // step) + 1)]


def _swatch(name: str) -> Element:
    return mark(*_block(name, 1, 1, 14, 14))
