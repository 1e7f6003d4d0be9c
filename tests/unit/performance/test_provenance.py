"""A figure says where it comes from, or is refused, by the name of what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pallas_rungs.performance.provenance import (
    Provenance,
    ProvenanceError,
    Quantity,
    captions,
    quantity,
    ratio,
    stands_in,
)

OF = Provenance("estimate", "v5e", ("bf16[8,128]",), "by counting", {"jax": "0.12.0.1"})
ON = replace(OF, kind="measurement", chip="NVIDIA H200", date="2026-11-30", code="0123456789abcdef")
ESTIMATE_JSON: dict[str, Any] = {
    "kind": "estimate",
    "chip": "v5e",
    "arguments": ["bf16[8,128]"],
    "method": "by counting",
    "versions": {"jax": "0.12.0.1"},
    "seconds": 1.5e-3,
    "low": 1.4e-3,
    "high": None,
}


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("kind", "guess", "`kind` is missing .*neither 'estimate' nor 'measurement'"),
        ("chip", "", "`chip` is missing"),
        ("arguments", (), "`arguments` is missing"),
        ("arguments", ("",), "`arguments` is missing"),
        ("arguments", "bf16[8]", "`arguments` is missing .*one text"),
        ("method", " ", "`method` is missing"),
        ("versions", {}, "`versions` is missing"),
        ("versions", {"jax": ""}, "`versions` is missing"),
        ("date", "yesterday", "`date` is missing .*'yesterday' is no day"),
        ("date", "2026-02-30", "`date` is missing"),
        ("code", "", "`code` is missing"),
    ],
)
def test_what_is_missing_is_refused_by_name(field: str, value: Any, why: str) -> None:
    with pytest.raises(ProvenanceError, match=f"a figure without provenance: {why}"):
        replace(OF, **{field: value})


def test_a_measurement_needs_the_hash_of_what_was_measured() -> None:
    with pytest.raises(ProvenanceError, match="`code` is missing"):
        replace(ON, code=None)
    assert replace(OF, code=None).code is None


def test_json_goes_both_ways_and_refuses_what_lacks() -> None:
    for one in (OF, ON):
        data = json.loads(json.dumps(one.to_json()))
        assert Provenance.from_json(data) == one
    for field in ("kind", "chip", "arguments", "method", "versions"):
        data = OF.to_json()
        del data[field]
        with pytest.raises(ProvenanceError, match=f"`{field}` is missing"):
            Provenance.from_json(data)


def test_a_caption_is_one_line_with_everything() -> None:
    assert OF.caption() == (
        "estimate, not a measurement, for v5e: bf16[8,128]; by counting; jax 0.12.0.1; "
        "made in this build"
    )
    assert ON.caption() == (
        "measurement, on NVIDIA H200: bf16[8,128]; by counting; jax 0.12.0.1; "
        "of 2026-11-30; code 0123456789ab"
    )
    assert replace(ON, code="tokamax 0.0.17").caption().endswith("; code tokamax 0.0.17")


def test_what_figures_share_is_said_once_with_each_chip_named() -> None:
    others = [replace(OF, chip="v6e"), replace(OF, arguments=("f32[8]",)), OF, ON]
    estimates, measurement = captions([OF, *others])
    assert estimates.startswith(
        "estimates, not measurements, for v5e, v6e: bf16[8,128] and for v5e: f32[8]; by counting"
    )
    assert measurement == ON.caption()
    many = [replace(ON, code=f"{number:016x}") for number in range(5)]
    (several,) = captions(many)
    assert several.endswith("; hashes of 5 codes in the record")


def test_a_caption_is_recognised_in_a_text_and_prose_is_not() -> None:
    assert stands_in(f"20 µs\n{ON.caption()}")
    assert stands_in("estimate by: counting; jax 0.12.0.1, libtpu 0.0.50.1")
    assert not stands_in("20 µs, an estimate")
    assert not stands_in("an estimate; with another line\njax 0.12.0.1")


def test_an_estimate_gives_its_time_and_provenance() -> None:
    made = quantity(ESTIMATE_JSON, date="2026-11-29")
    assert made.value == 1.5e-3
    assert str(made) == "1.5 ms"
    assert made.provenance == replace(OF, date="2026-11-29")
    assert made.range == ""
    assert replace(made, high=1.6e-3).range == "1.4 ms to 1.6 ms"
    assert Quantity.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert quantity(made.to_json()) == made


@pytest.mark.parametrize("bare", [1.5e-3, "1.5 ms", None, 3])
def test_a_bare_number_is_no_figure(bare: Any) -> None:
    with pytest.raises(ProvenanceError, match="a figure without provenance"):
        quantity(bare)
    with pytest.raises(ProvenanceError, match="a figure without provenance"):
        Quantity(1.5e-3, "s", bare)


def test_an_estimate_that_lacks_its_versions_is_refused() -> None:
    with pytest.raises(ProvenanceError, match="`versions` is missing"):
        quantity({**ESTIMATE_JSON, "versions": {}})


def test_a_ratio_keeps_both_sides() -> None:
    one, other = Quantity(2.0, "s", OF), Quantity(4.0, "s", ON)
    found = ratio(one, other)
    assert found.value == 0.5
    assert found.of == (OF, ON)
    assert str(found) == "0.500 × (estimate / measurement)"
    assert str(ratio(one, one)) == "1.000 ×"
    with pytest.raises(ValueError, match="a ratio of s to B/s"):
        ratio(one, Quantity(1.0, "B/s", OF))
    with pytest.raises(ValueError, match="a ratio to 0"):
        ratio(one, Quantity(0.0, "s", OF))
    with pytest.raises(ProvenanceError, match="without provenance"):
        ratio(one, 4.0)
