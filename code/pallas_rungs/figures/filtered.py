"""A long table that its reader filters: choices above, rows in a box of their own, no script."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from pallas_rungs.figures.choices import CHOICES_CSS, Option, fieldset
from pallas_rungs.figures.tables import aligned, cell_html
from pallas_rungs.figures.theme import stylesheet

_CSS = (
    ".pr-figure .pr-long{overflow:auto;max-height:34rem;border:1px solid var(--f-line)}"
    ".pr-figure .pr-rows{border-collapse:collapse;margin:0;font:400 .9rem/1.3 var(--f-sans);"
    "width:100%}"
    ".pr-figure .pr-rows :is(th,td){border:0;border-bottom:1px solid var(--f-line);"
    "padding:.25rem .5rem;text-align:center;font-weight:400;vertical-align:top}"
    ".pr-figure .pr-rows thead th{position:sticky;top:0;background:var(--f-ground);z-index:1;"
    "font-weight:600;vertical-align:bottom}"
    ".pr-figure .pr-rows :is(th:first-child,td:last-child,th:last-child){text-align:left}"
    ".pr-figure .pr-rows code{overflow-wrap:anywhere}"
    "@container(max-width:36rem){.pr-figure .pr-rows thead th:not(:first-child){"
    "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:.3rem .1rem}"
    ".pr-figure .pr-rows :is(th,td){padding:.25rem .15rem}"
    ".pr-figure .pr-rows{font-size:.8rem}}"
)


@dataclass(frozen=True)
class Choice:
    """A question whose answer leaves some rows.

    Attributes:
        legend: the question.
        options: label -> names of the rows that it leaves; an option for all rows is put first.
    """

    legend: str
    options: Mapping[str, Collection[str]]


@dataclass(frozen=True)
class FilteredTable:
    """A table with choices.

    Attributes:
        headers: one heading for each column, the first for the names of the rows.
        rows: name of a row -> its other cells, as inline Markdown.
        choices: which rows to show; a row is shown that all choices leave.
        alt: what the table shows, for readers who hear the page.
        labels: name of a row -> what to show for it, inline Markdown; else the name as code.
    """

    headers: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    choices: tuple[Choice, ...]
    alt: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return aligned(
            [
                self.headers,
                *((self.labels.get(name, name), *cells) for name, cells in self.rows.items()),
            ]
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        mark = "f" + hashlib.sha256(self.alt.encode()).hexdigest()[:6]
        sets = "".join(
            fieldset(f"pr-{mark}-{place}", choice.legend, self._options(choice))
            for place, choice in enumerate(self.choices)
        )
        hides = "".join(
            f'.pr-figure:has([name="pr-{mark}-{place}"][value="{number}"]:checked) '
            f".pr-rows tbody tr:not(.{mark}-{place}-{number}){{display:none}}"
            for place, choice in enumerate(self.choices)
            for number in range(1, len(choice.options) + 1)
        )
        top = "".join(f'<th scope="col">{cell_html(name)}</th>' for name in self.headers)
        body = "".join(self._row(mark, name, cells) for name, cells in self.rows.items())
        table = f'<table class="pr-rows"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        label = escape(self.alt)
        markup = f'{sets}<div class="pr-long" role="region" tabindex="0" aria-label="{label}">'
        markup += f"{table}</div>"
        css = stylesheet(markup + CHOICES_CSS + _CSS) + CHOICES_CSS + _CSS + hides
        return f'<div class="pr-figure"><style>{css}</style>{markup}</div>'

    def _options(self, choice: Choice) -> list[Option]:
        given = [
            Option(str(number), label, len(set(names)))
            for number, (label, names) in enumerate(choice.options.items(), start=1)
        ]
        return [Option("all", "all", len(self.rows)), *given]

    def _row(self, mark: str, name: str, cells: tuple[str, ...]) -> str:
        kept = " ".join(
            f"{mark}-{place}-{number}"
            for place, choice in enumerate(self.choices)
            for number, names in enumerate(choice.options.values(), start=1)
            if name in names
        )
        label = self.labels.get(name, f"`{name}`")
        inside = "".join(f"<td>{cell_html(cell)}</td>" for cell in cells)
        return f'<tr class="{kept}"><th scope="row">{cell_html(label)}</th>{inside}</tr>'


def filtered_table(
    headers: Sequence[str],
    rows: Mapping[str, Sequence[str]],
    choices: Sequence[Choice],
    *,
    alt: str,
    labels: Mapping[str, str] | None = None,
) -> FilteredTable:
    """Make a table whose rows can be chosen.

    Where style sheets are not understood, every row is shown.

    Args:
        headers: one heading for each column, the first for the names of the rows.
        rows: name of a row -> its other cells, as inline Markdown.
        choices: which rows can be chosen.
        alt: what the table shows, for readers who hear the page.
        labels: what to show for a row in place of its name, which then only tells rows apart.

    Raises:
        ValueError: there are no rows, a row has more or fewer cells than there are headings, or an
            option names a row that is not there.
    """
    if not rows:
        raise ValueError("a table that is filtered needs rows")
    for name, cells in rows.items():
        if len(cells) + 1 != len(headers):
            raise ValueError(
                f"row {name} has a name and {len(cells)} cells, for {len(headers)} headings"
            )
    for choice in choices:
        for label, names in choice.options.items():
            if unknown := sorted(set(names) - set(rows)):
                raise ValueError(f"{choice.legend!r}, {label!r}: no row is called {unknown[0]!r}")
    plain = {name: tuple(cells) for name, cells in rows.items()}
    return FilteredTable(tuple(headers), plain, tuple(choices), alt, dict(labels or {}))
