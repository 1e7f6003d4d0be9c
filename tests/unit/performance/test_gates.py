"""Gates are data; their record is of the kernels as they are, or void by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import renew_gates

from pallas_rungs.compilers import libtpu
from pallas_rungs.kernels.softmax import softmax
from pallas_rungs.performance import gate_records, rivals
from pallas_rungs.performance.gate_records import (
    Entry,
    Side,
    ahead,
    estimated,
    lines,
    read_entries,
    write_entries,
)
from pallas_rungs.performance.gates import GATES, Gate, Rival, gate_named
from pallas_rungs.performance.provenance import Provenance, Quantity
from pallas_rungs.performance.sealed import RecordError
from pallas_rungs.performance.validation import constants_of

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
SHAPES = (jax.ShapeDtypeStruct((256, 512), jnp.bfloat16),)
TWICE = 2 * 2 * 256 * 512


def small(**changed: Any) -> Gate:
    given: dict[str, Any] = {
        "name": "small",
        "task": "softmax of small rows",
        "kernel": softmax,
        "configuration": {"v5e": {"bm": 64}, "v6e": {"bm": 64}},
        "rivals": (Rival("XLA", rivals.softmax, {"v5e": 0.5, "v6e": 0.6}),),
        "arguments": SHAPES,
        "reference": lambda x: x,
        "bytes_once": True,
    }
    return Gate(**{**given, **changed})


GATE = small()


def side(name: str, seconds: float, code: str, hbm_bytes: int = TWICE) -> Side:
    given = Provenance(
        "estimate",
        "v5e",
        ("bf16[256,512]",),
        "by counting",
        {"jax": "0.12.0.1"},
        "2026-11-30",
        code,
    )
    return Side(name, Quantity(seconds, "s", given), hbm_bytes)


def entry(gate: Gate, chip: str, seconds: float, hbm_bytes: int = TWICE) -> Entry:
    ours = side("kernel", seconds, gate.code(chip), hbm_bytes)
    theirs = tuple(side(it.name, 1e-3, gate.code(chip, it)) for it in gate.rivals)
    return Entry(gate.name, chip, ours, theirs, constants_of(chip))


@pytest.fixture
def record(tmp_path: Path) -> SimpleNamespace:
    """A record of the small gate on both chips, and what reads it."""
    path = tmp_path / "gates.json"
    write_entries(path, [entry(GATE, "v6e", 0.7e-3), entry(GATE, "v5e", 0.4e-3)], [GATE])
    return SimpleNamespace(path=path, read=partial(read_entries, path))


def test_the_gates_of_the_book_are_those_of_the_record() -> None:
    found = read_entries()
    assert {gate for gate, _ in found} == {gate.name for gate in GATES}
    assert [line for line in lines(found) if line.outcome != "met"] == []
    for gate in GATES:
        assert ahead(found, gate) or not gate.ahead_somewhere


def test_a_gate_needs_a_limit_where_it_has_a_configuration() -> None:
    with pytest.raises(
        ValueError, match="'small' has a configuration or a limit, and not both, for"
    ):
        small(configuration={"v5e": {"bm": 64}})


def test_a_gate_says_its_criterion_and_its_bytes() -> None:
    assert GATE.criterion == (
        "XLA: ≤ 0.5 × on v5e; ≤ 0.6 × on v6e. HBM: read once and written once, + 1 %"
    )
    assert GATE.least_bytes == TWICE
    assert GATE.call("v5e").keywords == {"bm": 64}  # type: ignore[attr-defined]
    assert [x.shape for x in GATE.arrays()] == [(256, 512)]
    with pytest.raises(LookupError, match="no gate is called 'x'; there are matmul, "):
        gate_named("x")


def test_a_record_is_read_as_it_was_written(record: Any) -> None:
    found = record.read(gates=[GATE])
    assert list(found) == [("small", "v5e"), ("small", "v6e")]
    assert found["small", "v5e"] == entry(GATE, "v5e", 0.4e-3)
    assert found["small", "v5e"].ratios()["XLA"].value == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"configuration": {"v5e": {"bm": 32}, "v6e": {"bm": 64}}}, "the kernel `softmax` or its"),
        ({"kernel": rivals.softmax}, "small on v6e is void: the kernel `softmax` or its config"),
        ({"arguments": (jax.ShapeDtypeStruct((512, 512), jnp.bfloat16),)}, "the kernel `softmax`"),
        (
            {"rivals": (Rival("XLA", jax.nn.softmax, {"v5e": 0.5, "v6e": 0.6}),)},
            "the rival XLA is written otherwise now",
        ),
        (
            {"rivals": (Rival("jax", rivals.softmax, {"v5e": 0.5, "v6e": 0.6}),)},
            "it is compared with others now",
        ),
    ],
)
def test_a_record_of_what_has_changed_is_void_by_name(
    record: Any, change: dict[str, Any], why: str
) -> None:
    with pytest.raises(RecordError, match=f"the record of small on v5e is void: .*{why}") as told:
        record.read(gates=[small(**change)])
    assert "`make gates` estimates what is missing" in str(told.value)
    left = record.read(gates=[small(**change)], only_valid=True)
    assert set(left) <= {("small", "v6e")}


def test_a_limit_may_change_without_a_new_estimate(record: Any) -> None:
    stricter = small(rivals=(Rival("XLA", rivals.softmax, {"v5e": 0.1, "v6e": 0.1}),))
    assert len(record.read(gates=[stricter])) == 2


def test_other_constants_void_a_record(record: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_records, "constants_of", lambda chip: {"frequency": 1.0})
    with pytest.raises(RecordError, match="small on v5e is void: the constants of v5e are others"):
        record.read(gates=[GATE])


def test_what_is_missing_or_gone_is_named(record: Any, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"there is no record none\.json; `make gates`"):
        read_entries(tmp_path / "none.json")
    other = small(name="other")
    with pytest.raises(RecordError, match="there is no record of other on v5e"):
        record.read(gates=[GATE, other])
    with pytest.raises(RecordError, match="the record of small on v5e is void: there is no such g"):
        record.read(gates=[other])


def test_a_figure_changed_by_hand_is_refused(record: Any) -> None:
    text = record.path.read_text()
    assert "0.0004" in text
    record.path.write_text(text.replace("0.0004", "0.0003"))
    with pytest.raises(RecordError, match="something was changed by hand"):
        record.read(gates=[GATE])


def test_a_line_says_what_came_of_the_criterion() -> None:
    found = {
        ("small", "v5e"): entry(GATE, "v5e", 0.55e-3),
        ("small", "v6e"): entry(GATE, "v6e", 0.5e-3, hbm_bytes=2 * TWICE),
    }
    on_v5e, on_v6e = lines(found, gates=[GATE])
    assert on_v5e.criterion == "≤ 0.5 × XLA, each byte once"
    assert on_v5e.outcome == "missed by 10.0%"
    assert on_v5e.measured == "queued"
    assert on_v6e.outcome == "missed: 2.00 of the bytes"
    assert ahead(found, GATE) == ("v5e", "v6e")
    assert ahead({**found, ("small", "v6e"): entry(GATE, "v6e", 2e-3)}, GATE) == ("v5e",)


@needs_libtpu
def test_both_sides_are_estimated_in_one_run() -> None:
    gate = replace(
        GATE,
        configuration={"v5e": {"bm": 64}},
        rivals=(Rival("XLA", rivals.softmax, {"v5e": 0.5}),),
    )
    made = estimated(gate, "v5e")
    assert made.kernel.hbm_bytes == gate.least_bytes
    (rival,) = made.rivals
    assert made.kernel.time.provenance.versions == rival.time.provenance.versions
    assert made.kernel.code == gate.code("v5e")
    assert rival.code == gate.code("v5e", gate.rivals[0])
    assert Entry.from_json(json.loads(json.dumps(made.to_json()))) == made


@needs_libtpu
def test_the_record_is_what_the_estimator_says_now() -> None:
    kept = read_entries()["softmax", "v5e"]
    made = estimated(gate_named("softmax"), "v5e")
    assert made.kernel.time.value == kept.kernel.time.value
    assert made.rivals[0].time.value == kept.rivals[0].time.value


GATED: list[tuple[str, Callable[..., Any]]] = [(gate.name, gate.reference) for gate in GATES]


@pytest.mark.parametrize(("name", "reference"), GATED, ids=[name for name, _ in GATED])
def test_a_rival_does_the_same_as_the_reference(name: str, reference: Callable[..., Any]) -> None:
    # At full size neither is quick here.
    gate = gate_named(name)
    given = _small_arrays(gate)
    want = reference(*given)
    for rival in gate.rivals:
        if "jax" in rival.name:
            continue  # it runs on a TPU only
        got = np.asarray(rival.call(*given), np.float64)
        assert np.abs(got - want).max() <= gate.tolerance * np.abs(want).max()


def _small_arrays(gate: Gate) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [tuple(min(n, 256) for n in it.shape) for it in gate.arguments]
    return [
        rng.standard_normal(shape).astype(it.dtype)
        for shape, it in zip(shapes, gate.arguments, strict=True)
    ]


def test_the_tool_estimates_what_is_missing_or_void_and_no_more(
    record: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # On v5e another block is asked for now; v6e is as it was.
    tuned = small(configuration={"v5e": {"bm": 32}, "v6e": {"bm": 64}})
    asked: list[tuple[str, str]] = []

    def made(gate: Gate, chip: str) -> Entry:
        asked.append((gate.name, chip))
        return entry(gate, chip, 0.3e-3)

    monkeypatch.setattr(renew_gates, "RECORD", record.path)
    monkeypatch.setattr(renew_gates, "GATES", (tuned,))
    monkeypatch.setattr(renew_gates, "estimated", made)
    monkeypatch.setattr(renew_gates, "read_entries", partial(read_entries, gates=[tuned]))
    monkeypatch.setattr(renew_gates, "write_entries", partial(write_entries, gates=[tuned]))
    monkeypatch.setattr(renew_gates.libtpu, "why_unavailable", lambda: "")
    monkeypatch.setattr(sys, "argv", ["renew_gates.py"])
    assert renew_gates.main() == 0
    assert asked == [("small", "v5e")]
    assert capsys.readouterr().out == "small on v5e: 300 µs, 0.300 × of XLA's\n"
    assert record.read(gates=[tuned])["small", "v5e"].kernel.time.value == 0.3e-3
    monkeypatch.setattr(sys, "argv", ["renew_gates.py", "--all"])
    assert renew_gates.main() == 0
    assert asked[1:] == [("small", "v5e"), ("small", "v6e")]
    monkeypatch.setattr(renew_gates.libtpu, "why_unavailable", lambda: "it is not here")
    assert renew_gates.main() == 1
