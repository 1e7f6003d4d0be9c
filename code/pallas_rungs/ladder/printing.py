"""Climbs on the standard output: text, a rich table, Markdown or JSON; and their exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pallas_rungs.ladder.files import FileClimb
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.report_markdown import error_markdown, report_markdown
from pallas_rungs.ladder.status import Status
from pallas_rungs.ladder.verdict import Frame, Verdict

PASSED, FAULT, USAGE, NOT_PROVED = 0, 1, 2, 3
"""Exit codes of a climb; the command line says what they mean."""

_UNPROVED = frozenset({Status.UNCHECKED, Status.TOOL_CANNOT, Status.UNAVAILABLE})


def exit_code_of(verdicts: Iterable[Verdict]) -> int:
    """Return 0 if all passed, 1 if a rung found fault, 3 if something was left unproved."""
    statuses = {verdict.status for verdict in verdicts}
    if statuses <= {Status.PASSED}:
        return PASSED
    return NOT_PROVED if statuses <= _UNPROVED | {Status.PASSED} else FAULT


def exit_code(climbs: Sequence[FileClimb]) -> int:
    """Return the exit code of several climbs: a fault counts before a target not tried."""
    code = exit_code_of(v for climb in climbs for r in climb.reports for v in r.verdicts)
    return USAGE if code != FAULT and any(climb.error for climb in climbs) else code


def as_json(climbs: Sequence[FileClimb]) -> str:
    """Return the climbs as one JSON object, of the same shape for one target and for several.

    `climbs` holds one object for each target, in the order given: `target`, `passed`, `reports`,
    `printed_lines`, and `error` where it could not be tried. A report holds `format`, `name`,
    `passed`, `first_caught`, `versions` and `verdicts`; a verdict is what `Verdict.to_json` gives,
    with `rules`.
    """
    data = {
        "climbs": [climb.to_json() for climb in climbs],
        "passed": all(climb.passed for climb in climbs),
        "exit_code": exit_code(climbs),
    }
    return json.dumps(data, indent=2)


def as_markdown(climbs: Sequence[FileClimb]) -> str:
    """Return the climbs as GitHub-flavoured Markdown."""
    parts = []
    for climb in climbs:
        if climb.error:
            parts.append(error_markdown(_name(climb), climb.error))
        file = _name(climb).rpartition(":")[0]
        parts += [report_markdown(_near(r), f"{file}: {r.name}") for r in climb.reports]
    return "\n\n".join(parts)


def show(climbs: Sequence[FileClimb], *, rich: bool) -> None:
    """Print the climbs: tables for a terminal, or plain text."""
    for number, climb in enumerate(climbs):
        if number:
            print()
        if len(climbs) > 1:
            print(f"== {_name(climb)}")
        if climb.error:
            sys.stdout.flush()
            print(f"pallas_rungs climb: {climb.error}", file=sys.stderr, flush=True)
        elif rich:
            _print_tables(climb)
        else:
            print("\n\n".join(str(_near(report)) for report in climb.reports))
        sys.stdout.flush()
        _show_printed(climb)
    if len(climbs) > 1:
        print(f"\n{summary(climbs)}")


def summary(climbs: Sequence[FileClimb]) -> str:
    """Return one line: how many targets came to what, and which of them did not pass."""
    words = {PASSED: "passed", FAULT: "at fault", NOT_PROVED: "not all proved", USAGE: "not tried"}
    found: dict[int, list[str]] = {}
    for climb in climbs:
        found.setdefault(exit_code([climb]), []).append(_name(climb))
    parts = [
        f"{len(names)} {words[code]}" + (f" ({', '.join(names)})" if code else "")
        for code, names in sorted(found.items())
    ]
    return f"{len(climbs)} targets: {', '.join(parts)}"


def _print_tables(climb: FileClimb) -> None:
    from rich.console import Console

    console = Console()
    for report in climb.reports:
        console.print(_near(report).rich())


def _name(climb: FileClimb) -> str:
    """The target, its file named from the current folder where it is below that."""
    path, _, symbol = climb.target.rpartition(":")
    return f"{_from_here(Path(path))}:{symbol}"


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _near(report: Report) -> Report:
    """The report with files below the current folder named from there."""
    here = Path.cwd()
    verdicts = []
    for verdict in report.verdicts:
        error = verdict.error
        if error is not None:
            frame = None if error.frame is None else _frame_from(here, error.frame)
            lines = tuple(_frame_from(here, line) for line in error.lines)
            verdict = replace(verdict, error=replace(error, frame=frame, lines=lines))
        verdicts.append(verdict)
    return replace(report, verdicts=tuple(verdicts))


def _frame_from(here: Path, frame: Frame) -> Frame:
    path = Path(frame.file)
    return replace(frame, file=str(path.relative_to(here))) if path.is_relative_to(here) else frame


def _show_printed(result: FileClimb) -> None:
    kept = _without_crashes(result.last_lines)
    count = result.printed_lines - (len(result.last_lines) - len(kept))
    if not kept:
        return
    lines = "line" if count == 1 else "lines"
    print(f"\nthe file printed {count} {lines}; the last:", file=sys.stderr)
    for line in kept[-8:]:
        print(f"  | {line[:200]}", file=sys.stderr)


def _without_crashes(lines: Sequence[str]) -> list[str]:
    """The lines without what Python prints when its process crashes; the verdict has that."""
    kept: list[str] = []
    dumped = False
    for line in lines:
        dumped = dumped or line.startswith("Fatal Python error: ")
        if not dumped:
            kept.append(line)
        if line.startswith("Extension modules: "):
            dumped = False
    return kept
