"""Fitting a chip's constants: on kernels made up from known ones, and on the record."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pallas_rungs.performance.clock import CLOCKS
from pallas_rungs.performance.fitting import (
    FITTED,
    HELD_OUT,
    LATENCIES,
    RATES,
    Constants,
    FitError,
    fits,
    fitted,
    fitted_overhead,
    fitted_with_latency,
    half_of,
    halves,
    milliseconds,
    task_of,
    with_constants,
    with_overhead,
)
from pallas_rungs.performance.validation import Compared, Comparison, constants_of

TRUE = Constants(1.6e9, 900e9)
AROUND = Constants(1.5e9, 1000e9)
BYTE = AROUND.frequency / AROUND.hbm_rate


def kernel(
    place: int, issue: float, moved: float, *, error: float = 0.0, shapes: str = ""
) -> Compared:
    """A kernel that issues so many cycles while it moves so many bytes, and waits for the longer.

    It is measured as a chip with the constants `TRUE` would take, times e to the error.
    """
    bytes_at = tuple(times * BYTE for times in RATES)
    point = Compared(
        name=f"v5e/ragged_dot/{place}",
        chip="v5e",
        operation="ragged_dot",
        shapes=shapes or f"lhs bf16[{place + 1},128], rhs bf16[128,128]",
        config={},
        measured_ms=1.0,
        estimated_ms=1.0,
        byte_cycles=bytes_at,
        cycles=tuple(max(issue, moved * byte) + 0.1 * moved * byte for byte in bytes_at),
    )
    return replace(point, measured_ms=milliseconds(point, TRUE) * math.exp(error))


def kernels(error: float = 0.0) -> list[Compared]:
    """Eight that are bound by their issue and eight by HBM, every other one off by the error."""
    return [
        kernel(place, 1e6, 1e8 if place < 8 else 4e9, error=error * (-1) ** place)
        for place in range(16)
    ]


def test_the_constants_that_made_the_measurements_are_found() -> None:
    found = fitted(kernels(), AROUND)
    assert found.constants.frequency == pytest.approx(TRUE.frequency, rel=1e-3)
    assert found.constants.hbm_rate == pytest.approx(TRUE.hbm_rate, rel=1e-3)
    assert found.rms_log_error < 1e-3
    assert (found.points, found.tasks, found.edge) == (16, 16, ())
    assert found.frequency_error < 1e-3
    assert found.hbm_error < 1e-3


def test_scatter_is_left_over_and_shows_as_uncertainty() -> None:
    found = fitted(kernels(0.05), AROUND)
    assert found.constants.frequency == pytest.approx(TRUE.frequency, rel=0.01)
    assert found.rms_log_error == pytest.approx(0.05, rel=0.05)
    # Eight kernels tell each constant: the mean of so many is off by error / sqrt(8).
    assert found.frequency_error == pytest.approx(0.05 / math.sqrt(8), rel=0.3)
    assert found.hbm_error == pytest.approx(0.05 / math.sqrt(8), rel=0.3)


def test_a_kernel_that_waits_for_nothing_tells_nothing_of_hbm() -> None:
    bound = [kernel(place, 1e6, 0.0) for place in range(4)]
    found = fitted(bound, AROUND)
    assert found.constants.frequency == pytest.approx(TRUE.frequency, rel=1e-3)
    slow = with_constants(bound, Constants(TRUE.frequency, TRUE.hbm_rate / 1.5))
    assert [each.ratio for each in slow] == pytest.approx([1, 1, 1, 1])


def test_an_optimum_beyond_the_search_is_told() -> None:
    far = [replace(each, measured_ms=each.measured_ms * 2) for each in kernels()]
    assert fitted(far, AROUND, spread=0.2).edge == ("frequency", "HBM")


def test_prices_between_and_beyond_recorded_rates_follow_the_line() -> None:
    line = kernel(0, 0.0, 4e6)  # bound by HBM at every rate: 1.1 times its bytes
    for byte in (BYTE * 0.5, BYTE * 0.95, BYTE * 1.17, BYTE * 2):
        constants = Constants(1e9, 1e9 / byte)
        assert milliseconds(line, constants) == pytest.approx(1.1 * 4e6 * byte / 1e6)


def test_a_point_without_cycles_and_too_few_points_are_refused() -> None:
    with pytest.raises(FitError, match="v5e/ragged_dot/0: its cycles were not recorded"):
        milliseconds(replace(kernel(0, 1.0, 1.0), cycles=()), AROUND)
    with pytest.raises(FitError, match="1 points: two constants need 2"):
        fitted(kernels()[:1], AROUND)


def test_what_has_the_same_arrays_is_in_the_same_half() -> None:
    same = (
        "lhs bf16[8,4], rhs bf16[2,4,16], groups of 5, 3 rows",
        "lhs bf16[8,4], rhs bf16[2,4,16], 2 groups, 8 rows in all",
    )
    assert task_of(same[0]) == task_of(same[1]) == "bf16[8,4] bf16[2,4,16]"
    assert task_of("lhs bf16[8,4], rhs bf16[2,4,8]") != task_of(same[0])
    assert half_of(same[0]) == half_of(same[1])
    on, out = halves(kernels())
    assert {half_of(each.shapes) for each in on} == {FITTED}
    assert {half_of(each.shapes) for each in out} == {HELD_OUT}
    assert len(on) + len(out) == 16
    assert 4 <= len(on) <= 12


def test_the_split_never_changes() -> None:
    shapes = [f"x bf16[{2**n},128]" for n in range(12)]
    assert "".join("F" if half_of(each) == FITTED else "H" for each in shapes) == "HFHFFHFFFFFF"


def test_a_fit_is_judged_on_the_half_that_it_has_not_seen() -> None:
    points = kernels()
    # What is held out took 10 % longer: the fit must not know.
    shifted = [
        replace(
            each, measured_ms=each.measured_ms * (1.1 if half_of(each.shapes) == HELD_OUT else 1)
        )
        for each in points
    ]
    record = Comparison(
        ("2026-01-01", "2026-01-01"),
        {},
        "by hand",
        {"v5e": constants_of("v5e")},
        (*shifted, replace(points[0], name="v5e/ragged_dot/99", cycles=())),
        {},
    )
    (found,) = fits(record)
    assert found.chip == "v5e"
    assert found.in_use.frequency == CLOCKS["v5e"].frequency.value
    assert found.errors[FITTED, "fitted"].rms_log_error < 2e-3
    assert found.errors[HELD_OUT, "fitted"].rms_log_error == pytest.approx(math.log(1.1), rel=0.02)
    assert found.errors[FITTED, "fitted"].points + found.errors[HELD_OUT, "fitted"].points == 16
    assert "fitted on" in str(found)
    assert "the held-out half, constants fitted: 0.09" in str(found)


def test_an_overhead_for_each_program_is_found_again() -> None:
    points = [
        replace(each, programs=place, measured_ms=1 + 3e-4 * place)
        for place, each in enumerate(kernels(), start=1)
    ]
    found = fitted_overhead(points)
    assert found == pytest.approx(3e-4)
    assert [each.ratio for each in with_overhead(points, found)] == pytest.approx([1] * 16)
    with pytest.raises(FitError, match="whose programs were counted"):
        fitted_overhead([*points, replace(points[0], programs=0)])


def test_a_latency_is_found_again() -> None:
    true = Constants(TRUE.frequency, TRUE.hbm_rate, 0.8e-6)
    latencies = tuple(1.5e9 * seconds for seconds in LATENCIES)
    points = []
    for each in kernels():
        # Every other one waits for 2000 transfers, one after the other.
        transfers = 2000 if len(points) % 2 else 0
        late = tuple(tuple(c + transfers * cycles for c in each.cycles) for cycles in latencies)
        point = replace(each, latencies=latencies, late=late)
        points.append(replace(point, measured_ms=milliseconds(point, true)))
    found = fitted_with_latency(points, AROUND)
    assert found.latency == pytest.approx(0.8e-6)
    assert found.frequency == pytest.approx(true.frequency, rel=0.01)
    assert found.hbm_rate == pytest.approx(true.hbm_rate, rel=0.01)
    with pytest.raises(FitError, match="its cycles were not recorded"):
        fitted_with_latency(kernels(), AROUND)
