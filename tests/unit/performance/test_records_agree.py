"""Where two records answer the same question they give the same answer.

The pages, the sweep and the gates keep records of their own, and a build asks a part of each again.
What they share ties the rest together: one that was not renewed with the others is found here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

from pallas_rungs.compilers.records.live import RECORDS
from pallas_rungs.performance.accuracy import accuracy_of
from pallas_rungs.performance.clock import clock_of
from pallas_rungs.performance.gate_records import read_entries

PRODUCT_CHIPS: Final = ("v5e", "v5p", "v6e", "tpu7x")
CHIPS: Final = ("v5e", "v6e")
SAME: Final = pytest.approx


@cache
def record(name: str) -> Any:
    return json.loads((RECORDS / f"{name}.json").read_text("utf8"))["value"]


def of_gate(gate: str, chip: str) -> dict[str, float]:
    """Seconds of the kernel and of each rival in the record of the gates."""
    entry = read_entries()[gate, chip]
    return {"kernel": entry.kernel.time.value} | {it.name: it.time.value for it in entry.rivals}


@pytest.mark.parametrize("chip", PRODUCT_CHIPS)
def test_the_products_are_the_gates(chip: str) -> None:
    page = record(f"gate-products-{chip}")
    gate = of_gate("matmul", chip)
    assert gate["kernel"] == SAME(page["and turning round"]["seconds"])
    assert gate["XLA"] == SAME(page["XLA"]["seconds"])
    swept = record("tile-sweep")[f"{chip} XLA"]["cycles"] / clock_of(chip).frequency.value
    assert gate["XLA"] == SAME(swept)


@pytest.mark.parametrize("chip", CHIPS)
def test_the_products_with_a_gelu_are_the_gates(chip: str) -> None:
    page, fusion = record(f"gate-products-{chip}"), record("fusion-product")
    gate = of_gate("matmul + GELU", chip)
    assert gate["kernel"] == SAME(page["GELU"]["seconds"])
    assert gate["kernel"] == SAME(fusion[f"{chip}, kernel"]["seconds"])
    assert gate["XLA"] == SAME(page["XLA, GELU"]["seconds"])
    assert gate["XLA"] == SAME(fusion[f"{chip}, XLA"]["seconds"])


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("gate", "task"),
    [("softmax", "softmax"), ("LayerNorm", "layer_norm"), ("RMSNorm", "rms_norm")],
)
def test_the_tasks_over_rows_are_the_gates(gate: str, task: str, chip: str) -> None:
    page = record("fusion-goals")["of"]
    for who, seconds in of_gate(gate, chip).items():
        assert seconds == SAME(page[f"{task}, {chip}, {who}"]["seconds"])


@pytest.mark.parametrize("chip", CHIPS)
def test_attention_is_the_gates(chip: str) -> None:
    page = record("attention-by-chip")[chip]
    gate = of_gate("attention", chip)
    assert gate["jax's flash kernel"] == SAME(page["jax"]["seconds"])
    assert gate["XLA"] == SAME(page["XLA"]["seconds"])
    # The gate's call leaves the logsumexp away.
    assert gate["kernel"] == SAME(page["ours"]["seconds"], rel=0.01)


def test_the_records_of_a_page_agree() -> None:
    by_chip, by_length = record("attention-by-chip")["v5e"], record("attention-by-length")
    for name, found in by_length.items():
        assert found[2] == by_chip[name]
    searched = {tuple(size): it for size, it in record("attention-sizes-v5e")["jax"]}
    assert searched[1024, 1024, 1024] == by_chip["jax"]
    blocks, goals = record("fusion-blocks"), record("fusion-goals")["of"]
    assert blocks["256, v5e"] == goals["layer_norm, v5e, kernel"]


def estimates(value: Any) -> Iterator[dict[str, Any]]:
    """The estimates in a record that have a range."""
    if isinstance(value, dict):
        if value.keys() >= {"seconds", "low", "high", "chip"}:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from estimates(one)


def has_range_of_today(found: dict[str, Any]) -> bool:
    known = (accuracy_of(found["chip"], pallas, found["seconds"]) for pallas in (True, False))
    ranges = [it.range(found["seconds"]) if it else (None, None) for it in known]
    given = found["low"], found["high"]
    return given in ranges or any(None not in it and given == SAME(it, rel=1e-9) for it in ranges)


@pytest.mark.parametrize("name", sorted(file.stem for file in RECORDS.glob("*.json")))
def test_ranges_in_a_record_are_those_of_todays_errors(name: str) -> None:
    """After the estimator's record has grown the pages' records follow: `make records`."""
    assert all(map(has_range_of_today, estimates(record(name))))
