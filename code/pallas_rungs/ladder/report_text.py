"""The plain-text form of a ladder report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pallas_rungs.ladder.notes import shared_notes, shared_rules
from pallas_rungs.ladder.verdict import Frame, KernelError, Verdict

_INDENT = "      "
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def report_text(name: str, verdicts: Sequence[Verdict], versions: Mapping[str, str]) -> str:
    """Return the report as lines of text, one for each verdict and more below the sick ones.

    Where verdicts in a row have the same error, its line and advice stand below the first.
    How the verdicts came about, where that is not as usual, stands below them all.
    """
    labels = [v.label for v in verdicts]
    words = [str(v.status) for v in verdicts]
    label_width = max(map(len, labels), default=0)
    word_width = max(map(len, words), default=0)
    lines = [name]
    told: list[str] = []
    for verdict, label, word in zip(verdicts, labels, words, strict=True):
        cached = " (cached)" if verdict.cached else ""
        lines.append(
            f"  {verdict.rung.number}  {label:<{label_width}}  {word:<{word_width}}  "
            f"{verdict.said}{cached}".rstrip()
        )
        more = error_lines(verdict.error) if verdict.error else []
        if more != told:
            lines += [_INDENT + line for line in more]
        told = more
    lines += [f"  {note}" for note in shared_notes(verdicts)]
    for suggestion, said in shared_rules(verdicts):
        lines.append(f"  {suggestion.kind} ({', '.join(said)}): {suggestion.rule.text}")
        lines.append(_INDENT + suggestion.rule.link)
    lines.append(versions_line(versions))
    return "\n".join(map(printable, lines))


def printable(line: str) -> str:
    """Return a line with its control characters written out: a terminal obeys them."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", line)


def error_lines(error: KernelError) -> list[str]:
    """Return where an error came from and what to do, a line each."""
    frames = error.lines or ((error.frame,) if error.frame is not None else ())
    lines = [at_line(frame) for frame in frames]
    if error.advice:
        lines.append(f"→ {error.advice}")
    return lines


def at_line(frame: Frame) -> str:
    """Return a line of the user's code as `"read at FILE:LINE: SOURCE"`, or who did it instead."""
    if not frame.file:
        return f"{frame.role} by pallas_call, which moves the blocks in and out"
    source = f": {frame.source}" if frame.source else ""
    return f"{frame.role} at {frame.file}:{frame.line}{source}".lstrip()


def versions_line(versions: Mapping[str, str]) -> str:
    """Return the versions as one line, e.g. `"jax 0.12.0.1 · python 3.13.0 · 2026-01-01"`."""
    return " · ".join(
        value if name == "date" else f"{name} {value}" for name, value in versions.items()
    )
