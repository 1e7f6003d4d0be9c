"""The one error that drawing from an installed package raises."""

from __future__ import annotations


class ExcerptError(LookupError):
    """An excerpt cannot be drawn: a module, symbol or anchor is missing or ambiguous.

    The message names package, version, module, symbol and anchor as far as they are known, and says
    what to do.
    """
