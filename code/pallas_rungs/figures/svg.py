"""A small drawing core: SVG elements, escaping, and figures that a notebook cell shows.

Lengths are CSS pixels. Coordinates are rounded to a tenth, and ids are made from a drawing's
content, so that the same data always gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from pallas_rungs.figures.theme import colour, stylesheet

type Attribute = str | float | None


@dataclass(frozen=True)
class Element:
    """One XML element. Text children are escaped when it is written."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Element | str, ...] = ()

    def __str__(self) -> str:
        head = "".join(f' {name}="{escape(value)}"' for name, value in self.attributes)
        if not self.children:
            return f"<{self.tag}{head}/>"
        inner = "".join(c if isinstance(c, Markup) else _text_of(c) for c in self.children)
        return f"<{self.tag}{head}>{inner}</{self.tag}>"


class Markup(str):
    """Text that is XML already and is written as it is."""

    __slots__ = ()


def _text_of(child: Element | str) -> str:
    return str(child) if isinstance(child, Element) else escape(child, quote=False)


def number(value: float) -> str:
    """Write a coordinate: a tenth of a pixel, no trailing zero."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def el(tag: str, *children: Element | str, **attributes: Attribute) -> Element:
    """Make an element.

    Args:
        tag: the element's name.
        children: elements and text.
        attributes: names with ``_`` for ``-`` (a trailing ``_`` is dropped, as in ``class_``);
            numbers are coordinates, None leaves the attribute out.
    """
    pairs = tuple(
        (name.rstrip("_").replace("_", "-"), value if isinstance(value, str) else number(value))
        for name, value in attributes.items()
        if value is not None
    )
    return Element(tag, pairs, children)


def text(
    x: float,
    y: float,
    *content: Element | str,
    size: float = 13,
    fill: str,
    weight: int | None = None,
    anchor: str | None = None,
    mono: bool = False,
    halo: str | None = None,
) -> Element:
    """One line of text with its baseline at `y`.

    Args:
        x: left edge, middle or right edge, by `anchor`.
        y: the baseline.
        content: what it says: text, and `tspan` elements.
        size: font size.
        fill: CSS colour.
        weight: CSS font weight; normal if None.
        anchor: ``middle`` or ``end``; start if None.
        mono: use the fixed-width face.
        halo: CSS colour of an outline that keeps lines behind the text away from it.
    """
    return el(
        "text",
        *content,
        class_="m" if mono else None,
        x=x,
        y=y,
        font_size=size,
        font_weight=None if weight is None else str(weight),
        text_anchor=anchor,
        fill=fill,
        stroke=halo,
        stroke_width=None if halo is None else 4,
        stroke_linejoin=None if halo is None else "round",
        paint_order=None if halo is None else "stroke",
    )


def text_width(content: str, size: float, *, mono: bool = False) -> float:
    """Estimate how wide a line of text is, in pixels; a little too wide rather than too narrow."""
    return len(content) * size * (0.61 if mono else 0.53)


def hatch(x: float, y: float, width: float, height: float, *, step: float = 6) -> str:
    """Path data of 45° lines that fill a rectangle, without needing a pattern and its id."""
    parts = []
    offset = step / 2
    while offset < width + height:
        x0, y0 = (x + offset, y) if offset <= width else (x + width, y + offset - width)
        x1, y1 = (x, y + offset) if offset <= height else (x + offset - height, y + height)
        parts.append(f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}")
        offset += step
    return "".join(parts)


@dataclass(frozen=True)
class SVG:
    """One drawing, which a screen reader takes as one image.

    Attributes:
        width: in pixels, at which the drawing is shown where there is room.
        height: in pixels.
        body: what is drawn.
        title: its name, one short phrase.
        desc: what it shows, in full sentences.
        show: ``always``, or ``wide`` or ``narrow`` for one of two drawings of the same thing, of
            which the reader's width chooses.
    """

    width: float
    height: float
    body: tuple[Element, ...]
    title: str
    desc: str
    show: str = "always"

    def __post_init__(self) -> None:
        if not self.title.strip() or not self.desc.strip():
            raise ValueError("a drawing needs a title and a description, for readers who hear it")
        if self.show not in ("always", "wide", "narrow"):
            raise ValueError(f"show is {self.show!r}; it must be 'always', 'wide' or 'narrow'")

    def __str__(self) -> str:
        return self._written(style=None, standalone=False)

    def standalone(self) -> str:
        """The drawing as a file of its own, with its colours for light and dark."""
        return self._written(style=stylesheet("".join(map(str, self.body))), standalone=True)

    def save(self, path: Path) -> None:
        """Write the drawing to `path` as an SVG file."""
        path.write_text(self.standalone() + "\n", encoding="utf-8")

    def _written(self, style: str | None, standalone: bool) -> str:
        inner = "".join(map(str, self.body))
        key = hashlib.sha256(f"{self.title}\0{self.desc}\0{inner}".encode()).hexdigest()[:8]
        css = " ".join(
            name
            for name, wanted in (
                ("pr-figure", standalone),
                (f"pr-fig-{self.show}", not standalone and self.show != "always"),
            )
            if wanted
        )
        width, height = number(self.width), number(self.height)
        root = el(
            "svg",
            el("title", self.title, id=f"f{key}t"),
            el("desc", self.desc, id=f"f{key}d"),
            *(() if style is None else (el("style", Markup(style.replace("<", "\\3c "))),)),
            *self.body,
            xmlns="http://www.w3.org/2000/svg" if standalone else None,
            class_=css or None,
            role="img",
            aria_labelledby=f"f{key}t f{key}d",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
        )
        return str(root)


@dataclass(frozen=True)
class Figure:
    """Drawings side by side, wrapping where space is short, with a key below them.

    A cell whose last expression is a figure shows it.

    Attributes:
        alt: what the figure shows, for readers who cannot see it.
        panels: the drawings.
        key: (colour mark, words) of each entry of the key.
    """

    alt: str
    panels: tuple[SVG, ...]
    key: tuple[tuple[Element, str], ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.alt.strip():
            raise ValueError("alt is empty: say what the figure shows, for readers who cannot see")
        if not self.panels:
            raise ValueError("a figure needs at least one drawing")

    def _parts(self) -> Iterator[str]:
        drawn = "".join(map(str, self.panels))
        if len(self.panels) == 1 or any(p.show != "always" for p in self.panels):
            yield drawn
        else:
            yield f'<div class="pr-panels">{drawn}</div>'
        if self.key:
            items = "".join(f"<li>{mark}{escape(words)}</li>" for mark, words in self.key)
            yield f'<ul class="pr-key">{items}</ul>'

    def __str__(self) -> str:
        return self.alt

    def _repr_html_(self) -> str:
        parts = "".join(self._parts())
        style = stylesheet(parts)
        return (
            f'<div class="pr-figure" role="group" aria-label="{escape(self.alt)}">'
            f"<style>{style}</style>{parts}</div>"
        )

    def _repr_mimebundle_(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": str(self)}


def mark(*drawn: Element) -> Element:
    """A small square drawing, for a key."""
    return el("svg", *drawn, width=16, height=16, viewBox="0 0 16 16", aria_hidden="true")


def swatch(colour_number: int) -> Element:
    """A square in highlight colour 1 to 6, for a key."""
    return mark(
        el(
            "rect",
            x=1,
            y=1,
            width=14,
            height=14,
            rx=3,
            fill=colour(f"fill-{colour_number}"),
            stroke=colour(str(colour_number)),
            stroke_width=2,
        )
    )


def hatched_swatch() -> Element:
    """A hatched square, for a key."""
    return mark(
        el("path", d=hatch(1, 1, 14, 14, step=4), stroke=colour("muted")),
        el("rect", x=1, y=1, width=14, height=14, fill="none", stroke=colour("muted")),
    )
