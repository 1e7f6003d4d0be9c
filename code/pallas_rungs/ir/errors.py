"""The error of every reader of compilers' texts."""

from __future__ import annotations


class IRError(ValueError):
    """A text that a compiler wrote has not the shape that its reader knows.

    The message names the text, the line where that is known, what was expected and what was found.
    """

    def __init__(self, text: str, expected: str, found: str, line: int | None = None) -> None:
        place = text if line is None else f"{text}, line {line}"
        super().__init__(f"{place}: expected {expected}, found {found}")
