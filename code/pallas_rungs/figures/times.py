"""Tables and sentences of times: each says where its figures come from, once, below them.

A column says what it holds. One of estimates takes estimates only, one of measurements takes
measurements only, and no time is taken without its provenance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from pallas_rungs.figures.tables import Table, cell_html, table
from pallas_rungs.performance.provenance import (
    ESTIMATE,
    MEASUREMENT,
    MIME,
    Provenance,
    ProvenanceError,
    Quantity,
    Ratio,
    captions,
    quantity,
)
from pallas_rungs.performance.units import figures_in, unit_in_heading

LABEL: Final = "label"
PLAIN: Final = "plain"
RATIO: Final = "ratio"
QUEUED: Final = "queued"
"""What stands in a column of measurements for one that nobody has made yet."""

KINDS: Final = (LABEL, ESTIMATE, MEASUREMENT, RATIO, PLAIN)
_NEVER: Final = "estimates and measurements never share a column"


@dataclass(frozen=True)
class TimeTable(Table):
    """A table of times, with where they come from below it.

    Attributes:
        provenance: of each figure, in the order in which they stand.
    """

    provenance: tuple[Provenance, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([self.plain, *captions(self.provenance)])

    def _repr_html_(self) -> str:
        return super()._repr_html_() + _footer(self.provenance)

    def _repr_mimebundle_(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> dict[str, Any]:
        return {
            "text/html": self._repr_html_(),
            "text/plain": repr(self),
            MIME: [one.to_json() for one in self.provenance],
        }


def time_table(
    columns: Mapping[str, str], rows: Iterable[Sequence[Any]], *, ranges: bool = False
) -> TimeTable:
    """Make a table of times, or of rates.

    Args:
        columns: heading -> what the column holds:

            - "label": names of the rows; text.
            - "estimate": what `provenance.quantity` takes, where that is an estimate, or words
              such as "refused", without a digit.
            - "measurement": the same, where it is a measurement, or "queued".
            - "ratio": what `provenance.ratio` gives, or words.
            - "plain": anything that is no time and no rate: bytes, steps, what bounds it.
        rows: one sequence for each row, as long as `columns`.
        ranges: whether each time's range stands behind it, where it has one.

    Raises:
        ProvenanceError: a time without provenance, or one in a column of the other kind.
        ValueError: no column holds a figure, there is no such kind, or a row is too short or long.
    """
    for heading, kind in columns.items():
        if kind not in KINDS:
            raise ValueError(
                f"column {heading!r} is said to hold {kind!r}; columns hold {', '.join(KINDS)}"
            )
    if not set(columns.values()) & {ESTIMATE, MEASUREMENT, RATIO}:
        raise ValueError(
            "no column of this table holds a figure; `figures.table` makes such tables"
        )
    shown: list[list[object]] = []
    found: list[Provenance] = []
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise ValueError(
                f"row {number} of the table has {len(row)} cells and there are "
                f"{len(columns)} headings: {tuple(row)!r}"
            )
        shown.append([])
        for (heading, kind), value in zip(columns.items(), row, strict=True):
            try:
                text, of = _cell(heading, kind, value, ranges)
            except ProvenanceError as error:
                raise ProvenanceError(f"row {number}, column {heading!r}: {error}") from error
            shown[-1].append(text)
            found += of
    headings = [_heading(heading, kind) for heading, kind in columns.items()]
    made = table(headings, shown)
    return TimeTable(made.markup, made.plain, made.label, provenance=tuple(found))


def _heading(heading: str, kind: str) -> str:
    """The heading, with its kind in it."""
    if kind not in (ESTIMATE, MEASUREMENT) or kind in heading or kind + "d" in heading:
        return heading
    return f"{heading}, {kind}"


def _cell(
    heading: str, kind: str, value: Any, ranges: bool
) -> tuple[object, tuple[Provenance, ...]]:
    """What a cell shows, and where its figures come from."""
    if kind in (LABEL, PLAIN):
        return _plain(heading, value), ()
    if isinstance(value, str):
        return _word(kind, value), ()
    if kind == RATIO:
        if not isinstance(value, Ratio):
            raise ProvenanceError(
                f"a figure without provenance: {value!r}; `provenance.ratio` makes a ratio of two "
                "figures"
            )
        return str(value), value.of
    given = quantity(value)
    if given.kind != kind:
        raise ProvenanceError(
            f"{_NEVER}: this one holds {kind}s, and was given {_article(given.kind)} "
            f"({given.provenance})"
        )
    text = str(given)
    return f"{text} ({given.range})" if ranges and given.range else text, (given.provenance,)


def _article(kind: str) -> str:
    return f"an {kind}" if kind == ESTIMATE else f"a {kind}"


def _plain(heading: str, value: Any) -> object:
    """A value that must not be a figure of time or rate."""
    if isinstance(value, Quantity | Ratio):
        raise ProvenanceError(
            f"a {type(value).__name__} in a column without a kind: {value}; call the column "
            f"{' or '.join((ESTIMATE, MEASUREMENT, RATIO))!r}"
        )
    announced = unit_in_heading(heading)
    figure = next(figures_in(str(value)), None)
    if figure or (announced and any(letter.isdigit() for letter in str(value))):
        named = figure[0] if figure else f"{value}, under the unit {announced[0]}"  # type: ignore[index]
        raise ProvenanceError(f"a figure without provenance: {named}")
    return value


def _word(kind: str, value: str) -> str:
    """Words in the place of a figure."""
    if any(letter.isdigit() for letter in value):
        raise ProvenanceError(
            f"a figure without provenance: {value!r}; give the {kind} itself, not its text"
        )
    if (value == QUEUED) != (kind == MEASUREMENT):
        raise ProvenanceError(
            f"{value!r} stands for a figure in a column of {kind}s; measurements are "
            f"{QUEUED!r} until somebody makes them, and nothing else is"
        )
    return value


def _footer(found: Iterable[Provenance]) -> str:
    """Where figures come from, as HTML below them."""
    lines = "<br>".join(escape(line) for line in captions(found))
    return f'<p class="pr-provenance"><small>{lines}</small></p>'


@dataclass(frozen=True)
class Told:
    """A sentence of figures, with where they come from below it.

    Attributes:
        text: the sentence.
        provenance: of each figure in it.
    """

    text: str
    provenance: tuple[Provenance, ...]

    def __repr__(self) -> str:
        return "\n".join([self.text, *captions(self.provenance)])

    def _repr_mimebundle_(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> dict[str, Any]:
        lines = "".join(f"<p>{cell_html(line)}</p>" for line in self.text.splitlines())
        return {
            "text/html": f'<div class="pr-told">{lines}{_footer(self.provenance)}</div>',
            "text/plain": repr(self),
            MIME: [one.to_json() for one in self.provenance],
        }


def told(sentence: str, *sources: Any) -> Told:
    """Say a sentence with figures in it, and below it where they come from.

    Args:
        sentence: with `{}` in the place of each figure; several lines if you like.
        *sources: what `provenance.quantity` takes, or what `provenance.ratio` gives.

    Raises:
        ProvenanceError: a figure is a bare number, or stands in the sentence itself.
    """
    bare = next(figures_in(sentence), None)
    if bare:
        raise ProvenanceError(f"a figure without provenance: {bare[0]}; write {{}} in its place")
    given = [source if isinstance(source, Ratio) else quantity(source) for source in sources]
    of: list[Provenance] = []
    for one in given:
        of += one.of if isinstance(one, Ratio) else [one.provenance]
    return Told(sentence.format(*given), tuple(of))


@dataclass(frozen=True)
class Sourced:
    """A figure or a table, with where its times come from below it.

    Attributes:
        shown: what has `_repr_html_` and a plain form.
        provenance: of each figure in it.
    """

    shown: Any
    provenance: tuple[Provenance, ...]

    def __repr__(self) -> str:
        return "\n".join([str(self.shown), *captions(self.provenance)])

    def _repr_mimebundle_(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> dict[str, Any]:
        return {
            "text/html": self.shown._repr_html_() + _footer(self.provenance),
            "text/plain": repr(self),
            MIME: [one.to_json() for one in self.provenance],
        }


def sourced(shown: Any, *sources: Any) -> Sourced:
    """Put below a picture or a table where its times come from.

    Args:
        shown: an `SVG`, a `Figure` or a `Table` of this package.
        *sources: what `provenance.quantity` takes, or a `Provenance`.

    Raises:
        ProvenanceError: there is no source, or one is a bare number.
    """
    if not sources:
        raise ProvenanceError("a figure without provenance: `sourced` was given no source")
    found = [it if isinstance(it, Provenance) else quantity(it).provenance for it in sources]
    return Sourced(shown, tuple(found))
