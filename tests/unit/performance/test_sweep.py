"""Sweeps: the winner, refusals, order, progress, interruption; and that a fault in one is seen."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import psutil
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.crew import Crew
from pallas_rungs.ir.errors import IRError
from pallas_rungs.performance import (
    Estimate,
    EstimateError,
    Sweep,
    SweepInterrupted,
    Trial,
    estimate,
    sweep,
)
from pallas_rungs.performance.sweep import configurations_of, failed

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
X = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
ROWS = [8, 100, 256, 1024]
"""Many small blocks; none, for it does not divide; the best; and one that leaves nothing over."""


def doubled(x: jax.Array, *, bm: int, columns: int = 1024) -> jax.Array:
    """Return 2 x, bm rows a program."""
    if x.shape[0] % bm:
        raise ValueError(f"bm is {bm}\nand has to divide {x.shape[0]}")

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = 2 * x_ref[...]

    spec = pl.BlockSpec((bm, columns), lambda i, j: (i, j))
    out: jax.Array = pl.pallas_call(
        kernel,
        grid=(x.shape[0] // bm, x.shape[1] // columns),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
    return out


def by_xla(x: jax.Array) -> jax.Array:
    return 2 * x


@pytest.fixture(scope="module")
def told() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def found(told: list[tuple[str, int, int]]) -> Sweep:
    return sweep(
        doubled,
        X,
        over={"bm": ROWS},
        against=by_xla,
        workers=2,
        progress=lambda trial, done, of: told.append((trial.label, done, of)),
    )


@needs_libtpu
def test_the_winner_is_the_one_whose_own_estimate_is_shortest(found: Sweep) -> None:
    alone = {bm: estimate(partial(doubled, bm=bm), X).seconds for bm in ROWS if bm != 100}
    assert found.best.configuration == {"bm": min(alone, key=lambda bm: alone[bm])}
    assert {it.configuration["bm"]: it.seconds for it in found.estimated} == alone
    assert len(set(alone.values())) == len(alone), "then any order would pass"


@needs_libtpu
def test_trials_come_in_the_order_of_the_configurations_and_progress_tells_each(
    found: Sweep, told: list[tuple[str, int, int]]
) -> None:
    assert [it.configuration["bm"] for it in found.trials] == ROWS
    assert sorted(label for label, _, _ in told) == sorted(f"bm={bm}" for bm in ROWS)
    assert [done for _, done, _ in told] == [1, 2, 3, 4]
    assert {of for _, _, of in told} == {4}


@needs_libtpu
def test_what_is_refused_is_kept_with_kind_and_first_line(found: Sweep) -> None:
    (own,) = found.refused
    assert (own.kind, own.error_type, own.message) == ("refused", "ValueError", "bm is 100")
    assert own.why == "refused: ValueError: bm is 100"
    assert own.seconds == float("inf")
    assert found.ratio(own) is None
    large = jax.ShapeDtypeStruct((4096, 4096), jnp.float32)
    (over,) = sweep(doubled, large, over={"bm": [4096], "columns": [4096]}).trials
    assert over.kind == "refused"
    assert over.memory is not None
    assert (over.memory["used"], over.memory["limit"]) == (128 * 2**20, 16 * 2**20)
    assert over.why == "refused: needs 128 MiB of vmem, the limit is 16 MiB"


@needs_libtpu
def test_a_sweep_with_one_worker_is_the_same(found: Sweep) -> None:
    again = sweep(doubled, X, over={"bm": ROWS}, against=by_xla, workers=1)
    assert again == found
    assert again.to_json() == found.to_json()


@needs_libtpu
def test_every_form_says_what_it_is_and_what_was_refused(found: Sweep) -> None:
    data = json.loads(json.dumps(found.to_json()))
    assert data["kind"] == "sweep of estimates"
    assert data["best"] == found.trials.index(found.best)
    assert data["trials"][1]["kind"] == "refused"
    assert data["against"]["configuration"] == "by_xla"
    kept = [Estimate.from_json(it["estimate"]) for it in data["trials"] if "estimate" in it]
    assert kept == [it.estimate for it in found.estimated]
    for text in (str(found), found._repr_html_()):
        assert "estimates for v5e, not measurements" in text
        assert "doubled(f32[1024,1024])" in text
        assert "refused: ValueError: bm is 100" in text
        assert "without an estimate: 1 refused" in text
        assert "scalar program executed" in text
        assert "× by_xla" in text
        for name, version in libtpu.installed_versions().items():
            assert f"{name} {version}" in text
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == [f"bm={bm}" for bm in ROWS]


@needs_libtpu
def test_what_was_guessed_stands_below_the_table_with_the_configurations(found: Sweep) -> None:
    guess = "trips of the loop while.3, taken as 1"
    assert "guessed" not in str(found)
    trials = tuple(
        replace(it, estimate=it.estimate and replace(it.estimate, unresolved=(guess,)))
        for it in found.trials
    )
    lines = str(replace(found, trials=trials)).splitlines()
    bms = "; ".join(it.label for it in found.estimated)
    assert f"guessed for {bms}, beyond what the ranges hold: {guess}" in lines


@needs_libtpu
def test_configurations_of_any_kind_are_given_to_a_function_that_makes_the_program() -> None:
    def made(rows: int) -> Callable[..., Any]:
        return partial(doubled, bm=rows) if rows > 0 else None  # type: ignore[return-value]

    found = sweep(made, X, over=[1024, -1], chip="v6e")
    assert [it.label for it in found.trials] == ["1024", "-1"]
    assert found.trials[0].estimate is not None
    assert found.trials[0].estimate.main.name == "doubled.1"
    assert "TypeError" in found.trials[1].why


def _own_workers() -> list[psutil.Process]:
    return [it for it in psutil.Process().children(recursive=True) if it.is_running()]


@needs_libtpu
def test_a_worker_that_is_killed_costs_its_own_trial_only() -> None:
    before = {it.pid for it in _own_workers()}
    killed: list[int] = []

    def kill(trial: Trial, done: int, of: int) -> None:
        """After the first trial: its worker is at the next one by now."""
        if not killed:
            for process in _own_workers():
                with_it = process.pid not in before and not process.children()
                if with_it:
                    killed.append(process.pid)
                    process.kill()

    found = sweep(doubled, X, over={"bm": [8, 8, 8, 16, 32]}, workers=1, progress=kill)
    assert killed
    kinds = [it.kind for it in found.trials]
    assert kinds.count("crashed") <= 1
    assert set(kinds) <= {"", "crashed"}
    assert found.trials[0].estimate is not None, "what was estimated before is not lost"
    assert found.trials[-1].estimate is not None, "the rest goes on with another worker"


@needs_libtpu
def test_ctrl_c_keeps_what_there_is_and_leaves_no_worker() -> None:
    before = {it.pid for it in _own_workers()}

    def interrupt(trial: Trial, done: int, of: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(SweepInterrupted) as stopped:
        sweep(doubled, X, over={"bm": [8, 16, 32, 64]}, workers=2, progress=interrupt)
    kinds = [it.kind for it in stopped.value.sweep.trials]
    assert "" in kinds
    assert "not tried" in kinds
    left = [it for it in _own_workers() if it.pid not in before]
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not alive


@needs_libtpu
def test_a_faulty_order_would_be_seen(monkeypatch: pytest.MonkeyPatch, found: Sweep) -> None:
    """The planted fault: outcomes handed back under each other's numbers."""
    give = Crew.give
    monkeypatch.setattr(
        Crew, "give", lambda self, place, task: give(self, {0: 3, 3: 0}.get(place, place), task)
    )
    wrong = sweep(doubled, X, over={"bm": ROWS}, workers=2)
    assert [it.configuration["bm"] for it in wrong.trials] != ROWS
    assert wrong.trials != found.trials


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({}, "no argument was named"),
        ([], "the list of configurations is empty"),
        ({"bm": []}, "give a list of them"),
        ({"bm": "128"}, "give a list of them"),
        ({"bm": 128}, "give a list of them"),
    ],
)
def test_nothing_to_sweep_over_is_one_clear_error(over: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        configurations_of(over)
    with pytest.raises(ValueError, match=said):
        sweep(doubled, X, over=over)


def test_products_change_the_last_name_fastest() -> None:
    found = configurations_of({"bm": [1, 2], "bn": [(3, 4), 5]})
    assert found == [
        {"bm": 1, "bn": (3, 4)},
        {"bm": 1, "bn": 5},
        {"bm": 2, "bn": (3, 4)},
        {"bm": 2, "bn": 5},
    ]


def test_a_chip_without_constants_is_refused_with_those_that_have_some() -> None:
    for chip in ("v3", "v9"):
        with pytest.raises(ValueError, match="that can be estimated are v5e, v6e") as error:
            sweep(doubled, X, over={"bm": [8]}, chip=chip)
        assert "h100" not in str(error.value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EstimateError("timed out", "late"), "timed out"),
        (EstimateError("crashed", "gone"), "crashed"),
        (IRError("listing", "a row", "none"), "unreadable"),
        (RuntimeError(""), "refused"),
        (SystemExit(3), "refused"),
    ],
)
def test_each_error_has_its_kind(error: BaseException, kind: str) -> None:
    assert failed({"bm": 8}, error).kind == kind
    assert failed({"bm": 8}, error).why


def _of(seconds: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(
        "f", (), "v5e", seconds, low, high, "known", 1.0, 0, 0, (), (), libtpu.installed_versions()
    )


def test_the_best_is_told_apart_only_from_those_beyond_its_range() -> None:
    trials = [Trial(i, _of(s, s * 0.9, s * 1.1)) for i, s in enumerate((1.3, 1.0, 1.2))]
    found = Sweep("f", "v5e", (*trials, Trial(3, kind="refused")), None, {})
    assert found.best is trials[1]
    assert found.not_told_apart() == (trials[1], trials[2])
    unknown = Sweep(
        "f", "v4", (Trial(0, _of(1, None, None)), Trial(1, _of(9, None, None))), None, {}
    )
    assert len(unknown.not_told_apart()) == 2
    assert "no two configurations are told apart" in str(unknown)


def test_it_names_the_configurations_that_find_arguments_fetched() -> None:
    fetched = replace(_of(1.0, 0.9, 1.1), prefetched_bytes=3072)
    plain = replace(fetched, prefetched_bytes=0)
    trials = (Trial({"bm": 8}, fetched), Trial({"bm": 16}, plain))
    found = Sweep("f", "v5e", trials, Trial("XLA", fetched), {})
    told = [it for it in str(found).splitlines() if "3 KiB of arguments are fetched" in it]
    assert [it.partition(":")[0] for it in told] == [trials[0].label, found.against.label]
    assert found._repr_html_().count("3 KiB of arguments are fetched") == 2


def test_without_any_estimate_the_first_reason_is_told() -> None:
    found = Sweep("f", "v5e", (Trial({"bm": 8}, None, "crashed", "SIGABRT", "gone"),), None, {})
    with pytest.raises(LookupError, match="bm=8: crashed: SIGABRT: gone"):
        found.best  # noqa: B018
    assert "none of 1 configurations has one" in str(found)
    assert found.to_json()["best"] is None


class _Hand:
    """Does a task by waiting for it, until it is interrupted."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.closed = False

    def interrupt(self) -> None:
        self.let_go.set()

    def close(self) -> None:
        self.closed = True


def test_a_crew_hands_back_under_the_numbers_that_were_given() -> None:
    hands: list[_Hand] = []

    def hire() -> _Hand:
        hands.append(_Hand())
        return hands[-1]

    def do(hand: _Hand, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    with Crew(hire, do, 3) as crew:
        for place, seconds in enumerate((0.2, 0.0, 0.1)):
            crew.give(place, seconds)
        done = list(crew.done(wait=True))
    assert dict(done) == {0: 0.2, 1: 0.0, 2: 0.1}
    assert all(hand.closed for hand in hands)
    assert 1 <= len(hands) <= 3


def test_an_error_in_a_crew_interrupts_the_other_hands() -> None:
    hands: list[_Hand] = []

    def hire() -> _Hand:
        hands.append(_Hand())
        return hands[-1]

    def do(hand: _Hand, wait: bool) -> None:
        if not wait:
            raise RuntimeError("a fault of ours")
        hand.let_go.wait(60)

    def work() -> None:
        with Crew(hire, do, 2) as crew:
            crew.give(0, True)
            crew.give(1, False)
            list(crew.done(wait=True))

    with pytest.raises(RuntimeError, match="a fault of ours"):
        work()
    assert all(hand.closed for hand in hands)
