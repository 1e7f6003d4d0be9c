"""A table of times takes no figure without provenance, and never both kinds in a column."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from pallas_rungs.figures import sourced, table, time_table, told
from pallas_rungs.performance.provenance import (
    MIME,
    Provenance,
    ProvenanceError,
    Quantity,
    ratio,
)

OF = Provenance("estimate", "v5e", ("bf16[8,128]",), "by counting", {"jax": "0.12.0.1"})
ON = replace(OF, kind="measurement", chip="NVIDIA H200", date="2026-11-30", code="0123456789abcdef")
ESTIMATE = Quantity(1.5e-3, "s", OF, 1.4e-3, 1.6e-3)
MEASURED = Quantity(3e-3, "s", ON, 2.9e-3, 3.1e-3)
COLUMNS = {"kernel": "label", "ours": "estimate", "XLA": "measurement"}


def test_a_table_names_kinds_and_tells_provenance_once() -> None:
    made = time_table(
        {**COLUMNS, "ours / twice": "ratio", "bytes": "plain"},
        [
            ("a", ESTIMATE, MEASURED, ratio(ESTIMATE, MEASURED), 2048),
            ("b", ESTIMATE, "queued", "none", "4 KiB"),
        ],
    )
    lines = repr(made).splitlines()
    assert lines[0].split("  ")[0] == "kernel"
    assert "ours, estimate" in lines[0]
    assert "XLA, measurement" in lines[0]
    assert re.split("  +", lines[1]) == [
        *("a", "1.5 ms", "3 ms", "0.500 × (estimate / measurement)", "2048")
    ]
    assert lines[3:] == [OF.caption(), ON.caption()]
    bundle = made._repr_mimebundle_()
    assert [Provenance.from_json(one) for one in bundle[MIME]] == [OF, ON, OF, ON, OF]
    assert bundle["text/html"].count("by counting") == 2
    assert "for v5e" in bundle["text/html"]


def test_ranges_stand_behind_the_times() -> None:
    made = time_table(COLUMNS, [("a", ESTIMATE, MEASURED)], ranges=True)
    assert "1.5 ms (1.4 ms to 1.6 ms)" in made.plain


@pytest.mark.parametrize(
    ("column", "value", "holds"),
    [("estimate", MEASURED, "an? measurement"), ("measurement", ESTIMATE, "an estimate")],
)
def test_a_figure_in_a_column_of_the_other_kind_is_refused(
    column: str, value: Quantity, holds: str
) -> None:
    good = ESTIMATE if column == "estimate" else MEASURED
    with pytest.raises(
        ProvenanceError,
        match=rf"^row 2, column 'x': estimates and measurements never share a column: this one "
        rf"holds {column}s, and was given {holds} \({value.provenance.kind}",
    ):
        time_table({"x": column}, [(good,), (value,)])


@pytest.mark.parametrize("kind", ["estimate", "measurement", "ratio"])
@pytest.mark.parametrize("bare", [1.5, "1.5 ms", 3, None])
def test_a_bare_figure_is_refused(kind: str, bare: Any) -> None:
    with pytest.raises(ProvenanceError, match="row 1, column 'x': a figure without provenance"):
        time_table({"x": kind}, [(bare,)])


@pytest.mark.parametrize(
    ("heading", "value"),
    [("time, ms", 1.5), ("what", "1.5 ms"), ("GB/s", "819"), ("x", ESTIMATE), ("seconds", 3)],
)
@pytest.mark.parametrize("kind", ["plain", "label"])
def test_a_time_cannot_hide_in_a_plain_column(kind: str, heading: str, value: Any) -> None:
    with pytest.raises(ProvenanceError, match=r"row 1, column .*: a (figure without|Quantity in)"):
        time_table({heading: kind, "ours": "estimate"}, [(value, ESTIMATE)])


def test_words_stand_for_figures_only_where_they_may() -> None:
    made = time_table(COLUMNS, [("a", "refused", "queued")])
    assert made.plain.splitlines()[1].split() == ["a", "refused", "queued"]
    with pytest.raises(ProvenanceError, match="'queued' stands for a figure in a column of est"):
        time_table(COLUMNS, [("a", "queued", "queued")])
    with pytest.raises(ProvenanceError, match="'soon' stands for a figure in a column of meas"):
        time_table(COLUMNS, [("a", ESTIMATE, "soon")])


def test_columns_are_declared() -> None:
    with pytest.raises(ValueError, match="column 'x' is said to hold 'time'; columns hold label"):
        time_table({"x": "time"}, [])
    with pytest.raises(ValueError, match="no column of this table holds a figure"):
        time_table({"x": "label"}, [])
    with pytest.raises(ValueError, match="row 1 of the table has 2 cells and there are 3"):
        time_table(COLUMNS, [("a", ESTIMATE)])


def test_a_sentence_carries_its_figures_provenance() -> None:
    said = told("{} for the kernel, {} of XLA's", ESTIMATE, ratio(ESTIMATE, MEASURED))
    assert said.text == "1.5 ms for the kernel, 0.500 × (estimate / measurement) of XLA's"
    assert said._repr_mimebundle_()[MIME] == [OF.to_json(), OF.to_json(), ON.to_json()]
    assert repr(said).endswith(f"{OF.caption()}\n{ON.caption()}")
    with pytest.raises(ProvenanceError, match=r"a figure without provenance: 2 ms; write \{\}"):
        told("2 ms and {}", ESTIMATE)
    with pytest.raises(ProvenanceError, match=r"a figure without provenance: 0\.002"):
        told("{}", 0.002)


def test_a_picture_carries_the_provenance_of_what_it_shows() -> None:
    shown = sourced(table(["t"], [["a"]]), ESTIMATE, ON)
    bundle = shown._repr_mimebundle_()
    assert "<table>" in bundle["text/html"]
    assert bundle["text/html"].index("<table>") < bundle["text/html"].index("by counting")
    assert bundle[MIME] == [OF.to_json(), ON.to_json()]
    with pytest.raises(ProvenanceError, match="was given no source"):
        sourced(table(["t"], [["a"]]))
