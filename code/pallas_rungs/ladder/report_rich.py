"""The rich form of a ladder report, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from pallas_rungs.ladder.notes import notes
from pallas_rungs.ladder.report_text import error_lines, versions_line
from pallas_rungs.ladder.rules import suggestions
from pallas_rungs.ladder.status import Status
from pallas_rungs.ladder.verdict import Verdict

_STYLE = {
    Status.PASSED: "green",
    Status.UNCHECKED: "yellow",
    Status.TOOL_CANNOT: "yellow",
    Status.UNAVAILABLE: "dim",
    Status.NO_KERNEL: "yellow",
}


def report_rich(name: str, verdicts: Sequence[Verdict], versions: Mapping[str, str]) -> Group:
    """Return the report as a table and a line of versions."""
    table = Table(title=Text(name, style="bold"), title_justify="left", box=None, padding=(0, 1))
    for heading in ("", "rung", "target", "verdict", "what happened"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("", "rung", "verdict"))
    for verdict in verdicts:
        table.add_row(
            str(verdict.rung.number),
            str(verdict.rung),
            verdict.target,
            Text(str(verdict.status), style=_STYLE.get(verdict.status, "bold red")),
            _what_happened(verdict),
        )
    return Group(table, Text(versions_line(versions), style="dim"))


def _what_happened(verdict: Verdict) -> Text:
    text = Text(verdict.said)
    if verdict.cached:
        text.append(" (cached)", style="dim")
    more = error_lines(verdict.error) if verdict.error else []
    for line in [*more, *notes(verdict), *map(str, suggestions(verdict))]:
        text.append(f"\n{line}", style="dim")
    return text
