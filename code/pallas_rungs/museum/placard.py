"""The placard of one bug: what its author sees, what every rung says, and the rule."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from types import ModuleType

from pallas_rungs.figures.tables import aligned, cell_html, status_html
from pallas_rungs.figures.theme import stylesheet
from pallas_rungs.ladder.report import Report
from pallas_rungs.museum.climbs import climb_bug
from pallas_rungs.museum.verdicts import RUNGS, verdicts

_LONGEST = 220
"""Letters of a rung's words that are shown; the rest is in the ladder's report."""

_CSS = (
    ".pr-figure .pr-placard{font:400 .98rem/1.5 var(--f-sans);border:1px solid var(--f-line);"
    "border-radius:8px;padding:.8rem 1rem;background:var(--f-panel)}"
    ".pr-figure .pr-placard :is(p,table){margin:0 0 .6rem;max-width:none}"
    ".pr-figure .pr-placard p:last-child{margin:0}"
    ".pr-figure .pr-placard table{width:100%;border-collapse:collapse;table-layout:fixed}"
    ".pr-figure .pr-placard :is(th,td){border:0;padding:.2rem .1rem;text-align:center;"
    "font-size:.85rem}"
    ".pr-figure .pr-placard th{font-weight:400;color:var(--f-muted)}"
    ".pr-figure .pr-placard td.pr-caught{background:var(--f-bad-bg);border-radius:6px}"
    ".pr-figure .pr-placard .pr-status{display:inline-flex;flex-direction:column;"
    "align-items:center;white-space:normal;line-height:1.2}"
    ".pr-figure .pr-placard code{overflow-wrap:anywhere;font-size:.85em}"
)


@dataclass(frozen=True)
class Placard:
    """What is written beside a bug.

    Attributes:
        group: the group of symptoms it belongs to.
        symptom: what its author sees.
        rule: what its author did not know.
        report: what the ladder said.
    """

    group: str
    symptom: str
    rule: str
    report: Report

    @property
    def said(self) -> tuple[str, str]:
        """The first rung that blames the kernel and its words, or two empty strings."""
        caught = self.report.first_caught()
        if caught is None:
            return "", ""
        words = self.report.of(caught).summary
        return str(caught), words if len(words) <= _LONGEST else words[:_LONGEST].rstrip() + " …"

    def __str__(self) -> str:
        statuses = verdicts(self.report)
        rung, words = self.said
        told = [f"{rung} says: {words}"] if rung else []
        strip = aligned([list(statuses), list(statuses.values())])
        return "\n".join([f"{self.group}: {self.symptom}", strip, *told, f"Rule: {self.rule}"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        statuses = verdicts(self.report)
        rung, words = self.said
        top = "".join(f'<th scope="col">{name}</th>' for name in RUNGS)
        strip = "".join(
            f"<td{' class="pr-caught"' if name == rung else ''}>{status_html(status)}</td>"
            for name, status in statuses.items()
        )
        told = f"<p><b>{rung}</b> says: <code>{escape(words)}</code></p>" if rung else ""
        markup = (
            '<div class="pr-placard">'
            f"<p><b>{escape(self.group)}</b>: {cell_html(self.symptom)}</p>"
            f"<table><thead><tr>{top}</tr></thead><tbody><tr>{strip}</tr></tbody></table>{told}"
            f"<p><b>Rule.</b> {cell_html(self.rule)}</p></div>"
        )
        css = stylesheet(markup + _CSS) + _CSS
        return f'<div class="pr-figure"><style>{css}</style>{markup}</div>'


def placard(bug: ModuleType) -> Placard:
    """Return the placard of a bug; it is climbed for that, see `climb_bug`."""
    return Placard(bug.GROUP, bug.SYMPTOM, bug.RULE, climb_bug(bug))
