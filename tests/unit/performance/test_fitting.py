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
    crossed,
    fits,
    fitted,
    fitted_overhead,
    half_of,
    halves,
    in_use,
    judged,
    task_of,
    to_fit_on,
    with_constants,
    with_overhead,
)
from pallas_rungs.performance.validation import (
    Compared,
    Comparison,
    comparison,
    constants_of,
    of_estimates,
    of_unseen,
)

TRUE = Constants(1.6e9, 900e9)
AROUND = Constants(1.5e9, 1000e9)
BYTE = AROUND.frequency / AROUND.hbm_rate


def milliseconds(point: Compared, constants: Constants) -> float:
    """What a point takes with other constants."""
    (priced,) = with_constants([point], constants)
    return priced.ratio * priced.measured_ms


def kernel(
    place: int,
    issue: float,
    moved: float,
    *,
    transfers: int = 0,
    error: float = 0.0,
    shapes: str = "",
    true: Constants = TRUE,
) -> Compared:
    """A kernel that issues so many cycles while it moves so many bytes, and waits for the longer.

    Beside that it waits for so many transfers, one after the other. It is measured as a chip with
    the constants `true` would take, times e to the error.
    """
    bytes_at = tuple(times * BYTE for times in RATES)
    latencies = tuple(AROUND.frequency * seconds for seconds in LATENCIES)
    cycles = tuple(max(issue, moved * byte) + 0.1 * moved * byte for byte in bytes_at)
    point = Compared(
        name=f"v5e/ragged_dot/{place}",
        chip="v5e",
        operation="ragged_dot",
        shapes=shapes or f"lhs bf16[{place + 1},128], rhs bf16[128,128]",
        config={},
        measured_ms=1.0,
        estimated_ms=1.0,
        byte_cycles=bytes_at,
        cycles=cycles,
        latencies=latencies,
        late=tuple(tuple(each + transfers * late for each in cycles) for late in latencies),
    )
    return replace(point, measured_ms=milliseconds(point, true) * math.exp(error))


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
    with pytest.raises(FitError, match="1 points: 2 constants need 2"):
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


def waiting(true: Constants) -> list[Compared]:
    """Sixteen kernels, every other one with 2000 transfers that it waits for."""
    return [
        kernel(
            place,
            1e6,
            1e8 if place < 8 else 4e9,
            transfers=2000 if place % 2 else 0,
            true=true,
        )
        for place in range(16)
    ]


def test_a_latency_is_found_again() -> None:
    true = Constants(TRUE.frequency, TRUE.hbm_rate, 0.8e-6)
    found = fitted(waiting(true), replace(AROUND, latency=0.5e-6))
    assert found.constants.latency == pytest.approx(0.8e-6)
    assert found.constants.frequency == pytest.approx(true.frequency, rel=0.01)
    assert found.constants.hbm_rate == pytest.approx(true.hbm_rate, rel=0.01)
    assert found.latency_error < 0.05
    assert found.edge == ()


def test_a_latency_can_be_given_and_one_at_the_edge_is_told() -> None:
    points = waiting(Constants(TRUE.frequency, TRUE.hbm_rate, 0.8e-6))
    around = replace(AROUND, latency=0.5e-6)
    given = fitted(points, around, latencies=[0.3e-6])
    assert given.constants.latency == pytest.approx(0.3e-6)
    assert given.rms_log_error > 0.1
    assert given.edge == ()
    assert fitted(points, around, latencies=[0.3e-6, 0.5e-6]).edge == ("latency",)
    with pytest.raises(FitError, match="2 points: 3 constants need 3"):
        fitted(points[:2], around)


def test_points_recorded_at_other_rates_are_not_mixed() -> None:
    points = kernels()
    other = replace(points[1], byte_cycles=tuple(2 * each for each in points[1].byte_cycles))
    with pytest.raises(FitError, match="v5e/ragged_dot/1: its cycles were recorded at other rates"):
        fitted([points[0], other, *points[2:]], AROUND)


def test_each_half_is_judged_by_constants_that_have_not_seen_it() -> None:
    # One half was measured on a chip with a clock a tenth faster than the other half's.
    fast = replace(TRUE, frequency=1.1 * TRUE.frequency, hbm_rate=1.1 * TRUE.hbm_rate)
    points = [
        kernel(place, 1e6, 4e9 if place % 2 else 0.0, true=fast if in_first else TRUE)
        for place in range(16)
        for in_first in [half_of(f"lhs bf16[{place + 1},128], rhs bf16[128,128]") == FITTED]
    ]
    found = crossed(points, AROUND)
    assert {each.name for each in found} == {each.name for each in points}
    for each in found:
        expected = 1.1 if half_of(each.shapes) == FITTED else 1 / 1.1
        assert each.ratio == pytest.approx(expected, rel=5e-3)


def test_the_record_holds_what_constants_fitted_elsewhere_estimate() -> None:
    record = comparison()
    anew = judged(record)
    assert [it.unseen_ms for it in anew.points] == [it.unseen_ms for it in record.points]
    for chip in ("v5e", "v5p", "v6e", "tpu7x"):
        points = to_fit_on(record, chip)
        assert all(it.unseen_ms for it in points)
        assert of_unseen(points).rms_log_error == pytest.approx(
            of_estimates(crossed(points, in_use(chip))).rms_log_error, rel=1e-3
        )
    assert not any(it.unseen_ms for it in record.points if not it.pallas)


def test_a_chip_with_few_points_has_none_that_is_unseen() -> None:
    record = Comparison(("2026-01-01", "2026-01-01"), {}, "", {}, tuple(kernels()[:3]), {})
    assert judged(record) == record
