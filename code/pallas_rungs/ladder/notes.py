"""How a verdict came about, where a reader should know: overrides, pretence, attribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pallas_rungs.ladder.rules import Suggestion, suggestions
from pallas_rungs.ladder.status import Status
from pallas_rungs.ladder.verdict import Verdict


def notes(verdict: Verdict) -> list[str]:
    """Return what a reader should know about how the verdict came about, a sentence each."""
    told: list[str] = []
    details: dict[str, Any] = verdict.details
    if verdict.status != verdict.observed:
        told.append(f"Observed: {verdict.observed}; attributed to the tool, not to the kernel.")
    if "interpreter" in details:
        told.append(f"Interpreter: {details['interpreter']}.")
    pretend = details.get("pretend", {})
    if pretend.get("level", 0) >= (2 if verdict.rung.number >= 4 else 1):
        told.append(f"Chip: {pretend['how']} ({pretend['chip']}), because {pretend['why']}.")
    if verdict.status is Status.WRONG and verdict.difference and verdict.difference.nan:
        told.append(
            "NaN is what memory holds here before it is written: look for a read before the first "
            "write, past the end of an array, or before a copy has been waited for; else for "
            "arithmetic that gives it (0 / 0, the root of a negative number)."
        )
    if verdict.difference and verdict.difference.patterns:
        told.append(f"Pattern: {'; '.join(verdict.difference.patterns)}.")
    if verdict.status.blames_kernel:
        told += [f"In the program: {found}." for found in details.get("index maps", ())]
    if verdict.status is Status.WRONG and verdict.difference and verdict.difference.place:
        told.append(f"First in {verdict.difference.place}.")
    if "eager" in details:
        told.append(f"{details['eager']}.".capitalize())
    if alone := details.get("kernel alone"):
        goes = "goes" if len(alone) == 1 else "go"
        told.append(
            f"{', '.join(alone)} {goes} to the kernel alone: the reference has no such parameter."
        )
    if "next" in details:
        told.append(f"Next: {details['next']}.")
    return told


def shared_notes(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the notes of a whole report, each once, with the verdicts it belongs to."""
    labels: dict[str, list[str]] = {}
    for verdict in verdicts:
        for note in notes(verdict):
            labels.setdefault(note, []).append(verdict.label)
    return [f"{note.removesuffix('.')} ({', '.join(said)})." for note, said in labels.items()]


def shared_rules(verdicts: Sequence[Verdict]) -> list[tuple[Suggestion, list[str]]]:
    """Return the rules that a report points to, each once, with the verdicts that point to it."""
    labels: dict[Suggestion, list[str]] = {}
    for verdict in verdicts:
        for suggestion in suggestions(verdict):
            labels.setdefault(suggestion, []).append(verdict.label)
    return list(labels.items())
