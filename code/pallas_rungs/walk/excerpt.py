"""Draw lines of an installed package into the book, with their true line numbers and origin.

Nothing of upstream is kept in the repository: the text is read from the installed wheel each time
the book is built. Passages and notes hang on anchors (see `pallas_rungs.walk.anchors`), so that a
new upstream version either still says what the notes explain or fails the build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pallas_rungs.walk.anchors import Span
from pallas_rungs.walk.errors import ExcerptError
from pallas_rungs.walk.installed import InstalledModule
from pallas_rungs.walk.located import Passage, open_module

type NoteKind = Literal["algorithm", "schedule"]

KINDS: tuple[str, ...] = get_args(NoteKind.__value__)


@dataclass(frozen=True)
class Note:
    """A remark that hangs on a place in the drawn text.

    Attributes:
        anchor: text or ``@syntax`` that occurs exactly once in the excerpt.
        text: one paragraph of inline Markdown: code, emphasis, links to addresses.
        kind: ``algorithm`` if it says what is computed, ``schedule`` if it says when or where.
    """

    anchor: str
    text: str
    kind: NoteKind = "algorithm"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ExcerptError(
                f"note on {self.anchor!r} has kind {self.kind!r}; a note is one of: "
                f"{', '.join(KINDS)}"
            )
        if not self.text.strip():
            raise ExcerptError(f"note on {self.anchor!r} has no text; write it or remove the note")


@dataclass(frozen=True)
class PlacedNote:
    """A note, with its number (from 1, in line order) and the lines its anchor was found on."""

    number: int
    note: Note
    span: Span


@dataclass(frozen=True)
class Excerpt:
    """A drawn passage: the lines, where they come from, and the notes on them.

    Attributes:
        origin: the installed module that the lines were read from.
        symbol: full dotted name of the symbol inside the module.
        symbol_span: the lines of the whole symbol.
        span: the lines that are shown.
        notes: the notes in line order.
        caption: one line over the listing, or an empty string.
    """

    origin: InstalledModule
    symbol: str
    symbol_span: Span
    span: Span
    notes: tuple[PlacedNote, ...]
    caption: str = ""

    @property
    def lines(self) -> tuple[tuple[int, str], ...]:
        """The shown lines with their numbers in the installed file, unchanged."""
        text = self.origin.source.splitlines()
        return tuple((n, text[n - 1]) for n in range(self.span.first, self.span.last + 1))

    @property
    def permalink(self) -> str | None:
        """Address of the shown lines at the release tag, or None for an unknown forge."""
        return self.origin.permalink(self.span.first, self.span.last)

    def __str__(self) -> str:
        first, last = self.span.first, self.span.last
        where = f"line {first}" if first == last else f"lines {first}–{last}"
        head = f"{self.origin.package} {self.origin.version} · {self.origin.relative}, {where}"
        width = len(str(last))
        body = [f"{number:>{width}}  {text}" for number, text in self.lines]
        notes = [
            f"[{p.number}] line {p.span.first}, {p.note.kind}: {p.note.text}" for p in self.notes
        ]
        return "\n".join([head, *body, *notes])

    def _repr_html_(self) -> str:
        from pallas_rungs.walk.markup import excerpt_html

        return excerpt_html(self)


def excerpt(
    module: str,
    symbol: str,
    *,
    start: str | None = None,
    end: str | None = None,
    notes: Sequence[Note] = (),
    caption: str = "",
) -> Excerpt:
    """Draw a symbol of an installed module, or a passage inside it.

    Args:
        module: dotted name of the module, e.g. ``jax._src.pallas.core``. It is not imported.
        symbol: dotted name of a function, class, method, nested function or assignment, or any
            unambiguous tail of one, e.g. ``_get_start_index``; ``<module>`` for statements of the
            module itself.
        start: anchor of the first line to show; the symbol's first line if None.
        end: anchor of the last line to show; if None the symbol's last line, in ``<module>`` the
            last line of the statement in which `start` is.
        notes: remarks; each one's anchor must lie in the lines shown.
        caption: one line to show over the listing.

    Raises:
        ExcerptError: if the module, the symbol or an anchor is missing or ambiguous. The message
            names package, version, module, symbol and anchor.
    """
    opened = open_module(module)
    at = opened.locate(Passage(symbol, start=start, end=end))
    placed = sorted(
        ((opened.anchor(note.anchor, "note", at.span, at.symbol), note) for note in notes),
        key=lambda pair: (pair[0].first, pair[0].last),
    )
    return Excerpt(
        origin=opened.origin,
        symbol=at.symbol,
        symbol_span=at.symbol_span,
        span=at.span,
        notes=tuple(PlacedNote(i, note, on) for i, (on, note) in enumerate(placed, start=1)),
        caption=caption,
    )
