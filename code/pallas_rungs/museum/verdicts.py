"""Verdicts of the museum, recorded and computed, and what differs between the two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Final

from pallas_rungs import bugs
from pallas_rungs.figures.tables import aligned
from pallas_rungs.ladder.report import Report

RUNGS: Final = ("trace", "interpret", "simulate", "lower", "compile")
"""The rungs that every bug is tried on."""

Verdicts = Mapping[str, Mapping[str, str]]
"""Name of a bug -> rung -> status."""


def verdicts(report: Report) -> dict[str, str]:
    """Return the status of each rung; of several targets the first that did not pass."""
    return {rung: str(report.status(rung)) for rung in RUNGS}


def recorded(museum: Iterable[ModuleType] = bugs.MUSEUM) -> dict[str, dict[str, str]]:
    """Return what the bugs' authors wrote down."""
    return {bugs.name(bug): dict(bug.EXPECTED) for bug in museum}


def changes(before: Verdicts, after: Verdicts) -> list[str]:
    """Return a line for each verdict that differs: ``bug  rung: before → after``.

    A bug or a rung that one side lacks counts as ``not tried`` there.
    """
    lines = []
    for name in dict.fromkeys([*before, *after]):
        was, found = before.get(name, {}), after.get(name, {})
        for rung in dict.fromkeys([*was, *found]):
            old, new = was.get(rung, "not tried"), found.get(rung, "not tried")
            if old != new:
                lines.append(f"{name}  {rung}: {old} → {new}")
    return lines


def matrix_text(rows: Verdicts) -> str:
    """Return the matrix as text: a bug on each line, a rung in each column, · for passed."""
    return aligned(
        [
            ("bug", *RUNGS),
            *(
                (name, *(_short(statuses.get(rung, "")) for rung in RUNGS))
                for name, statuses in rows.items()
            ),
        ]
    )


def _short(status: str) -> str:
    return "·" if status == "passed" else status
