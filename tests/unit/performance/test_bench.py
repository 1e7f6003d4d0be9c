"""`bench` gives a figure only with provenance, only of a right result, and only on a chip."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_rungs.figures import time_table
from pallas_rungs.performance import bench as module
from pallas_rungs.performance.bench import BenchError, Measurement, bench, largest_error
from pallas_rungs.performance.provenance import ProvenanceError, quantity
from pallas_rungs.performance.sources import SourcesError, code_hash

X = np.linspace(0, 1, 512, dtype=np.float32).reshape(4, 128)


def doubled(x: Any) -> Any:
    return 2 * x


def twice_in_float64(x: Any) -> Any:
    return 2 * np.asarray(x, np.float64)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that goes on by a given time at each reading, so that a figure is known."""
    steps = [0.01] * 4 + [0.05, 0.01, 0.03, 0.02, 0.04]
    now, readings = 0.0, []

    def perf_counter() -> float:
        nonlocal now
        if len(readings) % 2:  # the second reading of each sample
            now += steps[min(len(readings) // 2, len(steps) - 1)]
        readings.append(now)
        return now

    monkeypatch.setattr(module.time, "perf_counter", perf_counter)
    return readings


def test_a_cpu_is_refused_unless_asked_for() -> None:
    with pytest.raises(BenchError, match="a CPU is not the chip: JAX has no accelerator here"):
        bench(doubled, X)
    found = bench(doubled, X, on_cpu=True, runs=5)
    assert found.provenance.chip == "this machine's CPU"
    assert found.seconds > 0


def test_a_measurement_says_where_it_comes_from() -> None:
    found = bench(
        doubled, X, on_cpu=True, runs=7, reference=twice_in_float64, tolerance=1e-6, name="twice"
    )
    given = found.provenance
    assert given.kind == "measurement"
    assert given.arguments == ("f32[4,128]",)
    assert re.match(r"median of 7 samples of \d+ calls each, .*; range: quartiles; ", given.method)
    assert given.method.endswith("result checked against float64, tolerance 1e-06")
    assert set(given.versions) == {"jax", "jaxlib"}
    assert given.date == datetime.now(UTC).date().isoformat()
    assert given.code == code_hash(doubled)
    assert found.error == 0
    assert found.quantity.low is not None
    assert found.quantity.high is not None
    assert found.quantity.low <= found.seconds <= found.quantity.high
    assert quantity(found) == found.quantity
    assert Measurement.from_json(json.loads(json.dumps(found.to_json()))) == found
    table = time_table({"n": "label", "t": "measurement"}, [("a", found)])
    assert "measurement, on this machine's CPU: f32[4,128]" in repr(table)
    assert str(found).startswith("twice: ")


def test_the_figure_is_the_median_of_warm_samples(counted: list[float]) -> None:
    found = bench(doubled, X, on_cpu=True, runs=5)
    # Three samples to choose the number of calls, one to warm up, then five; a clock that goes on
    # by 10 ms whatever is timed leaves one call in each.
    assert len(counted) == 2 * (3 + 1 + 5)
    assert (found.runs, found.calls) == (5, 1)
    assert found.seconds == pytest.approx(0.03)
    assert (found.quantity.low, found.quantity.high) == pytest.approx((0.015, 0.045))


def test_short_calls_share_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    times, made = module._times(lambda: calls.append(1), 5)
    assert made > 1
    assert len(calls) == 3 + made + 5 * made
    assert all(0 < one < 1e-3 for one in times)


def test_a_wrong_result_has_no_time() -> None:
    with pytest.raises(
        BenchError, match=r"doubled is off by 0\.5 of the reference's largest value"
    ):
        bench(doubled, X, on_cpu=True, reference=lambda x: 4.0 * x, tolerance=1e-2)


def test_what_is_asked_must_make_sense() -> None:
    with pytest.raises(ValueError, match="need 5 runs or more, not 4"):
        bench(doubled, X, on_cpu=True, runs=4)
    for given in ({"reference": twice_in_float64}, {"tolerance": 1e-3}):
        with pytest.raises(ValueError, match="the tolerance of its comparison go together"):
            bench(doubled, X, on_cpu=True, **given)


def test_no_figure_without_the_hash_of_the_code() -> None:
    made = eval("lambda x: 2 * x")
    with pytest.raises(SourcesError, match="not at hand"):
        bench(made, X, on_cpu=True)
    assert bench(made, X, on_cpu=True, runs=5, code="given").provenance.code == "given"


def test_a_record_without_provenance_is_refused() -> None:
    data = bench(doubled, X, on_cpu=True, runs=5).to_json()
    del data["provenance"]["versions"]
    with pytest.raises(ProvenanceError, match="`versions` is missing"):
        Measurement.from_json(data)
    del data["provenance"]
    with pytest.raises(ProvenanceError, match="a figure without provenance"):
        Measurement.from_json(data)


def test_errors_are_parts_of_the_largest_value() -> None:
    want = (np.array([1.0, -4.0]), np.array([0.0]))
    assert largest_error((jnp.array([1.0, -3.0]), jnp.array([0.0])), want) == 0.25
    assert largest_error((jnp.array([1.0, jnp.nan]), jnp.array([0.0])), want) == float("inf")
    assert largest_error(jnp.array([jnp.inf]), np.array([np.inf])) == 0
    assert largest_error(jnp.array([jnp.inf]), np.array([-np.inf])) == float("inf")
    with pytest.raises(ValueError, match=r"shape \(1,\), and its reference \(2,\)"):
        largest_error(jnp.array([1.0]), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="1 arrays were computed and the reference has 2"):
        largest_error(jnp.array([1.0]), want)
