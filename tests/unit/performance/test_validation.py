"""The comparison of estimates with measured medians: its statistics, its record, a live sample."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pallas_rungs.compilers import libtpu
from pallas_rungs.performance import accuracy, clock, estimate, measured_calls, medians
from pallas_rungs.performance.fitting import in_use, with_constants
from pallas_rungs.performance.sealed import RecordError
from pallas_rungs.performance.validation import (
    RECORD,
    Compared,
    Comparison,
    Neighbour,
    added,
    agreement,
    choice,
    comparison,
    constants_of,
    grouped,
    of_bounds,
    of_estimates,
    of_unseen,
    pairs,
    rank_correlation,
    read_record,
    roofline_ms,
    write_record,
)

needs_tokamax = pytest.mark.skipif(
    bool(medians.why_unavailable() or libtpu.why_unavailable()),
    reason="tokamax and libtpu are needed: make tokamax",
)
SAMPLE = ("v5p/flash attention/6", "v6e/layer norm/2")
"""Points of the record that compile in seconds: a Pallas kernel, and XLA's own code."""


def point(name: str, measured: float, estimated: float | None, **more: Any) -> Compared:
    chip, operation, _ = name.split("/")
    return replace(Compared(name, chip, operation, "x", {}, measured, estimated), **more)


ONE = point("v5e/ragged_dot/0", 1.0, 1.04)
TWO = point("v5e/ragged_dot/1", 2.0, 2.5)
THREE = point("v6e/ragged_dot/2", 4.0, 3.64)
FAILED = point("v6e/ragged_dot/3", 1.0, None, failed="took longer than 90 s here")


def record(*points: Compared) -> Comparison:
    chips = {each.chip for each in points}
    return Comparison(
        ("2026-01-01", "2026-01-02"),
        {"libtpu": "0", "tokamax": "1"},
        "by hand",
        {chip: constants_of(chip) for chip in sorted(chips)},
        points,
        {"v5e/ragged_dot": {"for a reason": 2}},
    )


def test_agreement_of_three_points_by_hand() -> None:
    found = of_estimates([ONE, TWO, THREE])
    assert found.points == 3
    assert found.median == pytest.approx(1.04)  # of 1.04, 1.25, 0.91
    assert found.within == pytest.approx((1 / 3, 2 / 3, 2 / 3))
    squares = math.log(1.04) ** 2 + math.log(1.25) ** 2 + math.log(0.91) ** 2
    assert found.rms_log_error == pytest.approx(math.sqrt(squares / 3))
    assert found.rank_correlation == pytest.approx(1)


def test_no_points_or_times_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="no estimate to compare"):
        agreement([])
    with pytest.raises(ValueError, match=r"positive; got 0\.0 estimated"):
        agreement([(0.0, 1.0)])
    with pytest.raises(ValueError, match="has no estimate: took longer"):
        of_estimates([FAILED])


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation([1, 2, 3], [10, 30, 20]) == pytest.approx(0.5)
    assert rank_correlation([1, 2, 3], [30, 20, 10]) == pytest.approx(-1)
    # Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3.
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    assert math.isnan(rank_correlation([1, 2], [1, 2]))
    assert math.isnan(rank_correlation([1, 1, 1], [1, 2, 3]))


def test_a_roofline_is_the_slower_of_its_two_rates() -> None:
    task = replace(ONE, operations=4_000_000_000, bytes=1_000_000)
    assert roofline_ms(task, rate=1e12, bandwidth=1e9) == pytest.approx(4)
    assert roofline_ms(task, rate=1e13, bandwidth=1e9) == pytest.approx(1)
    found = of_bounds([task], lambda each: roofline_ms(each, 1e12, 1e9))
    assert found.median == pytest.approx(4)


def test_pairs_are_of_the_same_task_and_their_sign_is_judged() -> None:
    first = point("v6e/ragged_dot/0", 1.0, 1.1)
    slower = point("v6e/ragged_dot v2/0", 1.2, 1.0)
    elsewhere = point("v5p/ragged_dot v2/0", 1.2, 1.2)
    other_task = point("v6e/ragged_dot v2/1", 0.5, 0.5, shapes="y")
    (pair,) = pairs([first, elsewhere, other_task, slower], "ragged_dot", "ragged_dot v2")
    assert (pair.first, pair.second) == (first, slower)
    assert pair.measured == pytest.approx(1.2)
    assert pair.estimated == pytest.approx(1.0 / 1.1)
    assert not pair.sign_right
    assert pairs([first, replace(slower, estimated_ms=1.3)], "ragged_dot", "ragged_dot v2")[
        0
    ].sign_right


def test_a_choice_is_ranked_among_its_neighbours() -> None:
    near = [
        Neighbour(ONE.name, {"tile": 1}, 1.02),
        Neighbour(ONE.name, {"tile": 2}, 2.08),
        Neighbour(ONE.name, {"tile": 4}, None, "refused"),
    ]
    found = choice(ONE, near)
    assert (found.rank, found.candidates, found.refused) == (2, 3, 1)
    assert (found.best, found.worst) == pytest.approx((1.02 / 1.04, 2))
    assert choice(ONE, []).best == choice(ONE, []).worst == choice(ONE, []).rank == 1
    both = replace(record(ONE, TWO, FAILED), neighbours=tuple(near))
    assert both.choices == (found,)


def test_groups_follow_the_table_of_chips() -> None:
    assert list(grouped([THREE, ONE, TWO])) == [("v5e", "ragged_dot"), ("v6e", "ragged_dot")]


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    near = Neighbour(ONE.name, {"tile": 1}, 1.02)
    tried = Neighbour(TWO.name, {"tile": 2}, None, "refused")
    priced = replace(ONE, byte_cycles=(0.5, 1.0), cycles=(10.0, 12.0), programs=3, in_xla=0.25)
    kept = replace(record(THREE, priced, FAILED, TWO), neighbours=(near,), tried=(tried,))
    write_record(path, kept)
    found = read_record(path)
    assert (found.neighbours, found.tried) == ((near,), (tried,))
    assert found.points == (priced, TWO, THREE, FAILED)
    assert found.estimated == (priced, TWO, THREE)
    assert found.made == "2026-01-02"
    assert "3 estimates of 2026-01-01 to 2026-01-02, made with libtpu 0, tokamax 1" in found.remark


def test_a_point_is_added_once(tmp_path: Path) -> None:
    found = added(record(ONE), replace(ONE, estimated_ms=2.0), "2026-02-03")
    assert [each.estimated_ms for each in found.points] == [2.0]
    assert found.days == ("2026-01-01", "2026-02-03")


@pytest.mark.parametrize("what", ["measured_ms", "estimated_ms", "shapes"])
def test_a_record_changed_by_hand_is_refused(tmp_path: Path, what: str) -> None:
    kept = json.loads(RECORD.read_text("utf-8"))
    kept["points"][0][what] = "y" if what == "shapes" else kept["points"][0][what] * 1.01
    path = tmp_path / RECORD.name
    path.write_text(json.dumps(kept), "utf-8")
    with pytest.raises(RecordError, match="by hand; remove it, and `make validate-est"):
        read_record(path)


def test_a_record_of_other_constants_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "record.json"
    points = [replace(ONE, name=f"v5e/ragged_dot/{n}") for n in range(accuracy.FEWEST)]
    write_record(path, record(*points))
    assert accuracy.accuracy_on(read_record(path), ("v5e",), pallas=True) is not None
    v5e = clock.CLOCKS["v5e"]
    faster = replace(v5e, frequency=replace(v5e.frequency, value=1.6e9))
    monkeypatch.setitem(clock.CLOCKS, "v5e", faster)
    with pytest.raises(RecordError, match=r"of v5e \(frequency 1500000000\.0 then, 1600000000\.0"):
        read_record(path)
    unchecked = read_record(path, same_constants=False)
    assert len(unchecked.points) == accuracy.FEWEST
    assert accuracy.accuracy_on(unchecked, ("v5e",), pallas=True) is None


def test_a_missing_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no record nothing\.json; `make validate-estimator`"):
        read_record(tmp_path / "nothing.json")


def test_accuracy_is_what_the_record_says() -> None:
    found = comparison()
    assert set(accuracy.PALLAS) <= set(medians.DEVICES)
    for chip, error in accuracy.PALLAS.items():
        points = [p for p in found.estimated if p.chip == chip and p.pallas and p.stored]
        assert error.points == len(points) >= accuracy.FEWEST
        assert error.rms_log_error == round(of_unseen(points).rms_log_error, 3)
    xla = [p for p in found.estimated if not p.pallas]
    assert accuracy.XLA is not None
    assert accuracy.XLA.points == len(xla)
    assert "XLA's own code, of gated linear unit and layer norm" in accuracy.XLA.source
    assert "on v5p, v6e, tpu7x" in accuracy.XLA.source or "on v6e, v5p" in accuracy.XLA.source
    short = [p for p in found.estimated if p.pallas and p.stored and p.measured_ms < 1]
    assert accuracy.SHORT is not None
    assert accuracy.SHORT.points == len(short)
    assert accuracy.accuracy_of("v4", pallas=True, seconds=1.0) is None


def test_the_cycles_of_the_record_price_its_estimates() -> None:
    """What a fit starts from is what the estimates are: at the rate in use both are the same."""
    with_cycles = [each for each in comparison().estimated if each.cycles]
    assert {each.chip for each in with_cycles} == set(medians.DEVICES)
    for each in with_cycles:
        (again,) = with_constants([each], in_use(each.chip))
        now = again.ratio * again.measured_ms
        assert now == pytest.approx(each.estimated_ms, rel=1e-5), each.name
        assert each.programs > 0
        assert list(each.byte_cycles) == sorted(each.byte_cycles)
        assert list(each.cycles) == sorted(each.cycles), f"{each.name}: a slower HBM saves time"
        # A rate or a latency left out is met by interpolation, so they lie close enough.
        _see_that_neighbours_tell(each.byte_cycles, each.cycles, each.name, 0.05)
        assert len(each.late) == len(each.latencies) >= 4
        for rows in zip(*each.late, strict=True):
            assert list(rows) == sorted(rows), f"{each.name}: a longer latency saves time"
            _see_that_neighbours_tell(each.latencies, rows, each.name, 0.08)


def _see_that_neighbours_tell(
    xs: Sequence[float], ys: Sequence[float], name: str, within: float
) -> None:
    """Interpolate each inner value from its neighbours."""
    for place in range(1, len(ys) - 1):
        (x0, x, x1), (y0, y, y1) = (values[place - 1 : place + 2] for values in (xs, ys))
        assert y0 + (y1 - y0) * (x - x0) / (x1 - x0) == pytest.approx(y, rel=within), name


def test_points_whose_configuration_is_not_stored_tell_no_error() -> None:
    stored = [replace(ONE, name=f"v5e/ragged_dot/{n}") for n in range(accuracy.FEWEST)]
    chosen = [replace(each, config={"tile_m": None}, estimated_ms=3.0) for each in stored]
    assert [each.stored for each in (stored[0], chosen[0])] == [True, False]
    assert accuracy.accuracy_on(record(*chosen), ("v5e",), pallas=True) is None
    both = accuracy.accuracy_on(record(*stored, *chosen), ("v5e",), pallas=True)
    assert both == accuracy.accuracy_on(record(*stored), ("v5e",), pallas=True)


def test_few_points_tell_no_error() -> None:
    assert accuracy.accuracy_on(record(ONE, TWO), ("v5e",), pallas=True) is None


def test_arrays_are_read_as_tokamax_writes_them() -> None:
    assert medians.array("bf16[8,128]").shape == (8, 128)
    assert str(medians.array("i32[]").dtype) == "int32"
    for text in ("f8_e4m3fn[8]", "bf16", "bf16[8"):
        with pytest.raises(ValueError, match="no array of the compared points"):
            medians.array(text)
    with pytest.raises(ValueError, match="no medians of 'softmax' on 'v5e'"):
        medians.medians("v5e", "softmax")


def numbers(contract: list[list[list[int]]]) -> dict[str, object]:
    return {"dot_dimension_numbers": contract}


@pytest.mark.parametrize(
    ("operation", "key", "operations", "moved", "shapes"),
    [
        (
            "ragged_dot",
            {
                "lhs": "bf16[8,4]",
                "rhs": "bf16[2,4,16]",
                "group_sizes": [5, 3],
                "ragged_dot_dimension_numbers": numbers([[[1], [1]], [[], []]]),
            },
            2 * 8 * 4 * 16,
            2 * (8 * 4 + 2 * 4 * 16 + 8 * 16),
            "lhs bf16[8,4], rhs bf16[2,4,16], groups of 5, 3 rows",
        ),
        (
            "ragged_dot",
            {
                "lhs": "bf16[8,16]",
                "rhs": "bf16[2,4,16]",
                "group_sizes": {"num_groups": 2, "total_size": 8},
                "ragged_dot_dimension_numbers": numbers([[[1], [2]], [[], []]]),
            },
            2 * 8 * 4 * 16,
            2 * (8 * 16 + 2 * 4 * 16 + 8 * 4),
            "lhs bf16[8,16], rhs bf16[2,4,16], 2 groups, 8 rows in all, rhs transposed",
        ),
        (
            "ragged_dot",
            {
                "lhs": "bf16[8,4]",
                "rhs": "bf16[8,16]",
                "group_sizes": [4, 4],
                "ragged_dot_dimension_numbers": numbers([[[0], [0]], [[], []]]),
            },
            2 * 8 * 4 * 16,
            2 * (8 * 4 + 8 * 16 + 2 * 4 * 16),
            "lhs bf16[8,4], rhs bf16[8,16], groups of 2 × 4 rows, rows contracted",
        ),
        (
            "flash attention",
            {
                "q": "bf16[1,4,2,8]",
                "k": "bf16[1,4,2,8]",
                "v": "bf16[1,4,2,8]",
                "mask": {"causal_mask": {"offset": 0}},
            },
            2 * 2 * (1 + 2 + 3 + 4) * (8 + 8),
            2 * 4 * 4 * 2 * 8,
            "q bf16[1,4,2,8], k bf16[1,4,2,8], v bf16[1,4,2,8], causal",
        ),
        (
            "cross entropy",
            {"x": "f32[8,4]", "labels": "i32[8]", "w": "bf16[4,16]"},
            2 * 8 * 4 * 16,
            4 * 8 * 4 + 4 * 8 + 2 * 4 * 16 + 4 * 8,
            "x f32[8,4], labels i32[8], w bf16[4,16]",
        ),
        (
            "layer norm",
            {"x": "bf16[8,4]", "scale": "f32[4]", "offset": "f32[4]"},
            0,
            2 * 2 * 8 * 4 + 2 * 4 * 4,
            "x bf16[8,4], scale f32[4], offset f32[4]",
        ),
        (
            "gated linear unit",
            {"x": "bf16[8,4]", "weights": "bf16[4,2,16]"},
            2 * 2 * 8 * 4 * 16,
            2 * (8 * 4 + 4 * 2 * 16 + 8 * 16),
            "x bf16[8,4], weights bf16[4,2,16]",
        ),
    ],
)
def test_work_of_a_task_by_hand(
    operation: str, key: dict[str, object], operations: int, moved: int, shapes: str
) -> None:
    task = medians.Point("v6e", operation, 0, key, {}, 1.0)
    assert medians.work(task) == (operations, moved)
    assert task.shapes == shapes


def test_many_groups_are_told_in_sum() -> None:
    key = {"lhs": "bf16[15,4]", "group_sizes": [1, 2, 3, 4, 5]}
    shapes = medians.Point("v5e", "ragged_dot", 0, key, {}, 1.0).shapes
    assert shapes == "lhs bf16[15,4], 5 uneven groups, 15 rows in all, 5 in the largest"


def test_an_absent_library_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(medians.FOLDER, str(tmp_path))
    with pytest.raises(medians.NoMediansError, match="`make tokamax` installs it"):
        medians.medians("v5e", "ragged_dot")


@needs_tokamax
def test_the_record_holds_the_medians_that_tokamax_ships() -> None:
    shipped = {each.name: each for each in medians.all_medians()}
    found = comparison()
    assert found.versions["tokamax"] == medians.version()
    for each in found.points:
        origin = shipped[each.name]
        assert each.measured_ms == origin.measured_ms, each.name
        assert (each.shapes, each.config) == (origin.shapes, origin.config)
        assert (each.operations, each.bytes) == medians.work(origin)
        assert not origin.left_out
    reasons = {reason for counted in found.left_out.values() for reason in counted}
    assert {medians.QUANTISED, medians.TRANSPOSED, medians.TWIN, medians.UNMEASURED} <= reasons
    for name, counted in found.left_out.items():
        of_kind = [each for each in shipped.values() if each.name.rsplit("/", 1)[0] == name]
        done = sum(each.name.rsplit("/", 1)[0] == name for each in found.points)
        assert sum(counted.values()) + done == len(of_kind), name


@needs_tokamax
def test_neighbours_are_in_the_tuners_space_and_next_to_the_stored_configuration() -> None:
    for each in comparison().choices:
        (origin,) = [
            p
            for p in medians.medians(each.point.chip, each.point.operation)
            if p.name == each.point.name
        ]
        near = measured_calls.neighbours(origin)
        recorded = [it.config for it in comparison().neighbours if it.of == each.point.name]
        assert all(config in near for config in recorded)
        for config in near:
            changed = [name for name in config if config[name] != origin.config[name]]
            assert len(changed) == 1, config
    with pytest.raises(ValueError, match="layer norm: its tuner's space is not read here"):
        measured_calls.neighbours(medians.medians("v6e", "layer norm")[0])


@needs_tokamax
@pytest.mark.parametrize("name", SAMPLE)
def test_a_point_estimated_anew_is_as_recorded(name: str) -> None:
    (kept,) = [each for each in comparison().points if each.name == name]
    (origin,) = [p for p in medians.medians(kept.chip, kept.operation) if p.name == name]
    function, arguments = measured_calls.call(origin)
    found = estimate(function, *arguments, chip=kept.chip)
    assert found.seconds * 1e3 == pytest.approx(kept.estimated_ms, rel=1e-5)
    assert found.unresolved == kept.unresolved
