"""Times and rates in words: how they are written, and how they are found in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pallas_rungs.performance.report import in_time

SECONDS: Final = "s"
"""The unit of a time, as a `Quantity` has it."""

UNITS: Final = {SECONDS: "time", "B/s": "rate", "op/s": "rate", "cycles": "cycles"}
"""What a `Quantity` may be in, and what that is."""

_SHORT: Final = r"(?:[mµμun]s|µsec|msec|(?:milli|micro|nano)seconds?)"
_TIME: Final = rf"(?:{_SHORT}|s|seconds?)"
_RATE: Final = (
    r"(?:[KMGTP]i?B(?:/s|ps| per second)|[KMGTP]?(?:FLOP|op)/?s|[KMGTP]FLOPS|10[⁰¹²³⁴⁵⁶⁷⁸⁹]+/s"
    r"|[GMk]?Hz)"
)
_POWER: Final = r"(?:e[+-]?\d+|[ \u00a0\u202f]?[×·][ \u00a0\u202f]?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
_NUMBER: Final = rf"(?:\d[\d,]*(?:\.\d+)?|\.\d+){_POWER}?"
_FIGURE: Final = re.compile(
    rf"(?<![\w.])(?![01]s)"  # zeros and ones
    rf"{_NUMBER}(?:"
    rf"[ \u00a0\u2009\u202f]?(?:(?P<time>{_TIME})|(?P<rate>{_RATE}))(?![\w/])"
    rf"|(?:-|\s{{1,3}})(?P<apart>{_SHORT})(?!\w)|[ \u00a0\u2009\u202f]?(?P<each>{_SHORT})(?=/)"
    rf")"
)
_NAMED: Final = re.compile(rf"\bseconds['\"]?\s?[:=]\s?{_NUMBER}")
_LIMIT_BEFORE: Final = re.compile(
    r"\b(?:below|under|after|longer than|within|limit of)\s+$", re.IGNORECASE
)
_LIMIT_AFTER: Final = re.compile(r"\s+(?:or (?:longer|more|less)|of CPU)\b")
_HEADING: Final = re.compile(
    rf"(?:^|[\s,(\[])(?:(?P<time>{_SHORT}|s|seconds)|(?P<rate>{_RATE}))"
    r"(?=$|[\s,)\]])"
)


def figures_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield each figure of time or rate in a text, and which of the two it is.

    A limit is none: "below 1 ms", "after 2 s", "1 ms or longer".

    Args:
      text: without markup.

    Yields:
      The figure as written, `20.3 µs`, and "time" or "rate".
    """
    for found in _FIGURE.finditer(text):
        before, after = text[: found.start()], text[found.end() :]
        if _LIMIT_BEFORE.search(before[-24:]) or _LIMIT_AFTER.match(after):
            continue
        yield found[0], "rate" if found["rate"] else "time"
    for found in _NAMED.finditer(text):
        yield found[0], "time"


def unit_in_heading(heading: str) -> tuple[str, str] | None:
    """Return the unit of time or rate that a heading announces, and which it is; None for none."""
    found = _HEADING.search(heading)
    if found is None:
        return None
    return found[0].strip(" ,([\n"), "time" if found["time"] else "rate"


def in_words(value: float, unit: str) -> str:
    """Write a value with three figures: `1.01 ms`, `819 GB/s`, `12,345 cycles`.

    Args:
      value: in `unit`.
      unit: one of `UNITS`.

    Raises:
      ValueError: there is no such unit.
    """
    if unit == SECONDS:
        return in_time(value)
    if unit == "cycles":
        return f"{value:,.0f} cycles"
    if unit not in UNITS:
        raise ValueError(f"{unit!r} is none of the units {', '.join(UNITS)}")
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{_three(value / scale)} {prefix}{unit}"
    return f"{_three(value)} {unit}"


def _three(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
