"""An installed module, read and parsed, in which passages are found by symbol and anchors.

Whatever draws, counts or explains lines of upstream finds them here, so that all of it loses its
anchor at the same change and says so in the same words.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pallas_rungs.walk.anchors import (
    AmbiguousError,
    NotFoundError,
    Span,
    find_anchor,
    find_symbol,
    statements,
)
from pallas_rungs.walk.errors import ExcerptError
from pallas_rungs.walk.installed import InstalledModule, installed_module

MODULE = "<module>"
"""In place of a symbol: the statements of the module itself, such as a registration."""


@dataclass(frozen=True)
class Passage:
    """A symbol of a module, or the lines between two anchors inside it.

    Attributes:
        symbol: dotted name, or any unambiguous tail of one; ``<module>`` for the module's own
            statements, which need a `start`.
        start: anchor of the first line; the symbol's first line if None.
        end: anchor of the last line; if None the symbol's last line, in ``<module>`` the last line
            of the statement in which the passage starts.
    """

    symbol: str
    start: str | None = field(default=None, kw_only=True)
    end: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Located:
    """Where a passage stands.

    Attributes:
        symbol: full dotted name of the symbol, or ``<module>``.
        symbol_span: the lines of the whole symbol.
        span: the lines of the passage.
    """

    symbol: str
    symbol_span: Span
    span: Span


@dataclass(frozen=True)
class OpenModule:
    """An installed module with its syntax tree.

    Attributes:
        origin: the text and where it comes from.
        tree: its syntax tree.
    """

    origin: InstalledModule
    tree: ast.Module = field(repr=False)

    @property
    def where(self) -> str:
        """Package, version and module, as errors name them."""
        return f"{self.origin.package} {self.origin.version}, module {self.origin.module}"

    def locate(self, passage: Passage, *, role: str = "") -> Located:
        """Find the lines of a passage.

        Args:
            passage: what to find.
            role: what the passage is for, such as ``fold``; errors about an anchor name it.

        Raises:
            ExcerptError: if the symbol or an anchor is missing or ambiguous, or if a passage of
                ``<module>`` has no start.
        """
        name, whole = self._symbol(passage.symbol)
        prefix = f"{role} " if role else ""
        if name == MODULE and passage.start is None:
            raise ExcerptError(
                f"{self.where}: a passage of {MODULE} has no start anchor, so it would be the "
                "whole file. Say where it starts."
            )
        start, last = whole, whole.last
        if passage.start is not None:
            start = self.anchor(passage.start, f"{prefix}start", whole, name)
        if passage.end is not None:
            rest = Span(start.first, whole.last)
            last = self.anchor(passage.end, f"{prefix}end", rest, name).last
        elif name == MODULE:
            around = (
                span.last
                for _, span in statements(self.tree)
                if span.first <= start.last <= span.last
            )
            last = next(around, start.last)
        return Located(name, whole, Span(start.first, last))

    def _symbol(self, symbol: str) -> tuple[str, Span]:
        if symbol == MODULE:
            return MODULE, Span(1, max(1, len(self.origin.source.splitlines())))
        try:
            return find_symbol(self.tree, symbol)
        except NotFoundError as error:
            raise ExcerptError(
                f"{self.where}: symbol {symbol!r} is gone: {error}. See how this version names it, "
                "then correct the excerpt and what the page says about it."
            ) from None
        except AmbiguousError as error:
            raise ExcerptError(
                f"{self.where}: symbol {symbol!r} is ambiguous: {error}. Give the full dotted name."
            ) from None

    def anchor(self, anchor: str, role: str, within: Span, symbol: str) -> Span:
        """Find an anchor inside some lines of a symbol.

        Args:
            anchor: text or ``@syntax``, see `pallas_rungs.walk.anchors`.
            role: what the anchor is for, as errors name it: ``start``, ``note``, …
            within: the lines to search.
            symbol: the symbol around them, as errors name it.

        Raises:
            ExcerptError: if it does not occur there, or more than once.
        """
        try:
            return find_anchor(self.origin.source, self.tree, anchor, within)
        except (NotFoundError, AmbiguousError) as error:
            gone = isinstance(error, NotFoundError)
            what = "is gone" if gone else "is ambiguous"
            advice = (
                "Read the installed text, then correct the anchor and check that what is said "
                "about it still holds."
                if gone
                else "Give a longer piece of text."
            )
            raise ExcerptError(
                f"{self.where}, symbol {symbol}: {role} anchor {anchor!r} {what}: {error}. {advice}"
            ) from None


def open_module(module: str) -> OpenModule:
    """Read and parse an installed module, without importing it.

    Args:
        module: dotted name, e.g. ``jax._src.pallas.core``.

    Raises:
        ExcerptError: if it is not installed as source, or states no licence.
    """
    origin = installed_module(module)
    return OpenModule(origin, ast.parse(origin.source, filename=str(origin.path)))
