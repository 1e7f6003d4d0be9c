"""The errors that drawing from an installed package raises."""

from __future__ import annotations


class ExcerptError(LookupError):
    """An excerpt cannot be drawn: a module, symbol or anchor is missing or ambiguous.

    The message names package, version, module, symbol and anchor as far as they are known, and says
    what to do.
    """


class AbsentExtraError(ExcerptError):
    """An excerpt is of an optional extra that is not on this machine; nothing is wrong with it.

    Attributes:
        extra: the extra's name.
    """

    def __init__(self, message: str, extra: str) -> None:
        super().__init__(message)
        self.extra = extra
