"""All bugs against all rungs: a table of marks whose rows lead to the bugs, filtered by symptom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from types import ModuleType

from pallas_rungs import bugs
from pallas_rungs.figures.choices import CHOICES_CSS, Option, fieldset
from pallas_rungs.figures.glyphs import STATUSES, first_caught, glyph
from pallas_rungs.figures.svg import el
from pallas_rungs.figures.tables import status_html
from pallas_rungs.figures.theme import stylesheet
from pallas_rungs.museum.verdicts import RUNGS, matrix_text

_ALL = "all"

_CSS = (
    ".pr-figure .pr-museum{border-collapse:collapse;margin:0;font:400 .95rem/1.3 var(--f-sans)}"
    ".pr-figure .pr-museum :is(th,td){border:0;border-bottom:1px solid var(--f-line);"
    "padding:.3rem .25rem;text-align:center;font-weight:400}"
    ".pr-figure .pr-museum th:first-child{text-align:left;min-width:7.5rem;padding-left:0}"
    ".pr-figure .pr-museum thead th{border-bottom:2px solid var(--f-strong);font-weight:600}"
    ".pr-figure .pr-museum td{min-width:2.6rem}"
    ".pr-figure .pr-museum .pr-status{display:inline-flex;flex-direction:column;"
    "align-items:center;gap:.05rem;font-size:.74rem;line-height:1.1;white-space:normal}"
    ".pr-figure .pr-museum .pr-passed span{position:absolute;width:1px;height:1px;"
    "overflow:hidden;clip-path:inset(50%)}"
    ".pr-figure .pr-museum td{position:relative}"
    ".pr-figure .pr-museum td.pr-caught{background:var(--f-bad-bg)}"
    ".pr-figure .pr-museum td.pr-caught .pr-status{font-weight:600}"
    "@container(max-width:36rem){.pr-figure .pr-museum thead th:not(:first-child){"
    "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:.3rem .1rem}"
    ".pr-figure .pr-museum :is(th,td){padding:.3rem .05rem}"
    ".pr-figure .pr-museum td{min-width:1.9rem}"
    ".pr-figure .pr-museum .pr-status span{position:absolute;width:1px;"
    "height:1px;overflow:hidden;clip-path:inset(50%)}}"
)


@dataclass(frozen=True)
class Matrix:
    """The museum's bugs against the rungs.

    Attributes:
        rows: name of a bug -> rung -> status, in the order to show.
        museum: the bugs, by name.
        alt: what the table shows, for readers who hear the page.
    """

    rows: Mapping[str, Mapping[str, str]]
    museum: Mapping[str, ModuleType]
    alt: str

    def __str__(self) -> str:
        return matrix_text(self.rows)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        top = "".join(f'<th scope="col">{rung}</th>' for rung in RUNGS)
        body = "".join(self._row(name, statuses) for name, statuses in self.rows.items())
        groups = self._groups()
        hides = "".join(
            f'.pr-figure:has(.pr-filter [value="{place}"]:checked) '
            f'.pr-museum [data-group]:not([data-group="{place}"]){{display:none}}'
            for place in range(len(groups))
        )
        markup = (
            f"{self._filter(groups)}"
            f'<div class="pr-scroll" role="region" tabindex="0" aria-label="{escape(self.alt)}">'
            f'<table class="pr-museum"><thead><tr><th scope="col">bug</th>{top}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>{self._key()}"
        )
        css = stylesheet(markup + CHOICES_CSS + _CSS) + CHOICES_CSS + _CSS
        css += ".pr-figure .pr-scroll{overflow-x:auto}" + hides
        return f'<div class="pr-figure"><style>{css}</style>{markup}</div>'

    def _groups(self) -> list[str]:
        """The symptoms that occur, in the museum's order."""
        there = {self.museum[name].GROUP for name in self.rows}
        return [group for group in bugs.GROUPS if group in there]

    def _filter(self, groups: list[str]) -> str:
        counts = [sum(group == self.museum[n].GROUP for n in self.rows) for group in groups]
        options = [Option(_ALL, "every symptom", len(self.rows))]
        options += [
            Option(str(place), group, count)
            for place, (group, count) in enumerate(zip(groups, counts, strict=True))
        ]
        return fieldset("pr-symptom", "What do you see?", options)

    def _key(self) -> str:
        """Marks and words, for readers whose screen is too narrow for words in the cells."""
        there = {status for statuses in self.rows.values() for status in statuses.values()}
        items = "".join(f"<li>{status_html(s)}</li>" for s in STATUSES if s in there)
        return f'<div class="pr-fig-narrow"><ul class="pr-key">{items}</ul></div>'

    def _row(self, name: str, statuses: Mapping[str, str]) -> str:
        bug = self.museum[name]
        caught = first_caught(statuses)
        cells = "".join(
            f"<td{' class="pr-caught"' if rung == caught else ''}>{_mark(statuses[rung])}</td>"
            for rung in RUNGS
        )
        link = f'<a href="{bugs.link(bug)}">{escape(bugs.title(bug))}</a>'
        return (
            f'<tr data-group="{self._groups().index(bug.GROUP)}">'
            f'<th scope="row">{link}</th>{cells}</tr>'
        )


def _mark(status: str) -> str:
    """Mark and word of a status; the word of what passed is for readers who hear the page."""
    if status != "passed":
        return status_html(status)
    shape = el(
        "svg", glyph(status, 8, 8), width=16, height=16, viewBox="0 0 16 16", aria_hidden="true"
    )
    return (
        f'<span class="pr-status pr-passed" data-status="passed">{shape}<span>passed</span></span>'
    )


def matrix(rows: Mapping[str, Mapping[str, str]], *, alt: str) -> Matrix:
    """Draw bugs against rungs, the first rung that blames each set off.

    Above the table is a choice of symptoms, which hides the rows of all others. It needs no script;
    where style sheets are not understood, every row is shown.

    Args:
        rows: name of a bug -> rung -> status, in the order to show.
        alt: what the table shows, for readers who hear the page.

    Raises:
        ValueError: there are no rows, or a name is no bug's.
    """
    museum = {bugs.name(bug): bug for bug in bugs.MUSEUM}
    if not rows:
        raise ValueError("no rows: give {name: {rung: status}} for at least one bug")
    if unknown := [name for name in rows if name not in museum]:
        raise ValueError(f"no bug is called {', '.join(unknown)}; the names are those of MUSEUM")
    return Matrix(dict(rows), museum, alt)
