"""From an exception to the error that a verdict shows: the innermost one, in the user's terms."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass

from pallas_rungs.ladder.advice import advice_for
from pallas_rungs.ladder.source_frames import (
    frame_in_text,
    is_users,
    lines_of_race,
    message_of,
    users_frame,
)
from pallas_rungs.ladder.verdict import Frame, KernelError

_RUNTIME_ERRORS = ("JaxRuntimeError", "XlaRuntimeError")
_INNER = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?::\s?(?P<message>.*))?\Z", re.DOTALL)
_MOSAIC_PREFIX = re.compile(
    r"(?:[A-Z_]+: )?Mosaic failed to compile TPU kernel with MLIR module name `[^`]*`"
    r"(?: HLO name `[^`]*`)?:?\s*"
)
_LONGEST_LINE = 1000
_NO_MESSAGE = "(the error carries no message)"


@dataclass(frozen=True)
class Innermost:
    """The innermost error: type name and whole message."""

    type: str
    message: str


def innermost(error: BaseException) -> Innermost:
    """Return the innermost error behind `error`.

    The runtime wraps what a callback raises into one error whose message holds a whole traceback;
    the exception at its end is the one that counts.
    """
    kind, text = type(error).__name__, message_of(error)
    return innermost_in_text(kind, text) if kind in _RUNTIME_ERRORS else Innermost(kind, text)


def innermost_in_text(kind: str, text: str) -> Innermost:
    """Return the exception at the end of the traceback in `text`; else `kind` and `text`."""
    marker = text.rfind("Traceback (most recent call last):")
    if marker < 0:
        return Innermost(kind, text)
    lines = text[marker:].splitlines()[1:]
    end = next((i for i, line in enumerate(lines) if line and not line[0].isspace()), None)
    match = None if end is None else _INNER.match("\n".join(lines[end:]).rstrip())
    if match is None:
        return Innermost(kind, text)
    name = match["type"].rpartition(".")[2]
    return innermost_in_text(name, match["message"] or "")


def first_line(message: str) -> str:
    """Return the first line of a message, without the compiler's own preamble, cut if very long."""
    text = _MOSAIC_PREFIX.sub("", message.strip(), count=1).strip() or message.strip()
    line = text.split("\n", 1)[0].strip()
    if len(line) > _LONGEST_LINE:
        line = line[:_LONGEST_LINE] + " …"
    return line or _NO_MESSAGE


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""How a terminal is told to change colour; jax puts it around the keywords of a jaxpr."""


def kernel_error(error: BaseException, fallback: Frame | None = None) -> KernelError:
    """Return the error that a verdict shows.

    Args:
      error: what was caught.
      fallback: the frame to name when no line of the user's own is found, e.g. the kernel's.
    """
    inner = innermost(error)
    message = _COLOUR.sub("", inner.message)
    calls = [] if message.strip() else _calls_to(error)
    return KernelError(
        type=inner.type,
        message=first_line(message) + (f", raised in {calls[-1]}" if calls else ""),
        full=message,
        frame=users_frame(error) or fallback,
        advice=""
        if _a_call_of_theirs(error)
        else advice_for(inner.type, message or " ".join(calls)),
        lines=lines_of_race(message),
    )


def in_full(error: KernelError) -> str:
    """Return type and whole message, with the line that raised where they say too little.

    Too little is said by a bare assertion, and by what Python says of None.
    """
    line = error.frame.source if error.frame is not None else ""
    if error.type == "AssertionError" and not error.full.strip():
        return f"{error.type}: {line}"
    if line and "'NoneType' object" in error.full:
        return f"{error.type}: {error.full}: {line}"
    return f"{error.type}: {error.full}"


def _a_call_of_theirs(error: BaseException) -> bool:
    """True for a call with arguments that do not fit, made by the user's code and not by jax."""
    frames = traceback.extract_tb(error.__traceback__)
    fits_not = isinstance(error, TypeError) and "positional argument" in message_of(error)
    return fits_not and bool(frames) and is_users(frames[-1].filename)


def _calls_to(error: BaseException) -> list[str]:
    """Return the names of the functions that led to an error which says nothing else."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def error_from_text(kind: str, message: str, fallback: Frame | None = None) -> KernelError:
    """Return the error that a verdict shows, from the type and message of another process."""
    inner = innermost_in_text(kind, message)
    return KernelError(
        type=inner.type,
        message=first_line(inner.message),
        full=inner.message,
        frame=frame_in_text(message) or fallback,
        advice=advice_for(inner.type, inner.message),
        lines=lines_of_race(inner.message),
    )
