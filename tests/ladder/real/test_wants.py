"""What real packages' kernels ask of a tool that tries them, each on the rungs that it concerns."""

import json

import pytest

from ladder.real import wants
from pallas_rungs.ladder import Rung, Status
from pallas_rungs.ladder.files import climb_file
from pallas_rungs.ladder.notes import notes
from pallas_rungs.ladder.protocol import problem_from_module
from pallas_rungs.ladder.rungs import attempt

EVERY = "trace interpret simulate lower"


def tried(symbol, rungs=EVERY, *, args=(wants.X,), reference=None, chip="v5e"):
    """The verdicts on a function of `wants`, by rung; its own cases win over `args`."""
    own = hasattr(wants, f"{symbol}_cases")
    posed = problem_from_module(wants, symbol, None if own else args, reference)
    return {rung: attempt(posed[0], rung, chip=chip) for rung in rungs.split()}


def statuses(verdicts):
    return {rung: str(verdict.status) for rung, verdict in verdicts.items()}


@pytest.mark.parametrize(
    "symbol", ["needs_keywords", "takes_pytrees", "is_static", "with_vjp", "picks"]
)
def test_its_own_cases_are_called_as_it_wants(symbol):
    assert statuses(tried(symbol)) == dict.fromkeys(EVERY.split(), "passed")


def test_an_argument_by_name_reaches_kernel_and_reference():
    [posed] = problem_from_module(wants, "needs_keywords", (wants.X,), None, {"scale": 0.25})
    assert attempt(posed, "interpret").status is Status.PASSED
    wrong = lambda x, *, scale: wants.needs_keywords_reference(x, scale=scale + 1)  # noqa: E731
    [posed] = problem_from_module(wants, "needs_keywords", (wants.X,), wrong, {"scale": 0.25})
    assert attempt(posed, "interpret").status is Status.WRONG


def test_a_gradient_has_the_kernels_of_both_passes():
    verdicts = tried("gradient")
    assert statuses(verdicts) == dict.fromkeys(EVERY.split(), "passed")
    assert verdicts["trace"].details["kernel names"] == ["doubling_kernel", "doubling_kernel (2)"]


def test_several_kernels_are_named():
    verdict = tried("two_kernels", "trace")["trace"]
    assert verdict.details["kernel names"] == ["first", "second"]
    assert "2 kernels: first, second" in verdict.summary


@pytest.mark.parametrize(
    ("symbol", "rung"),
    [
        ("second_is_sick", "lower"),
        ("second_is_out_of_range", "simulate"),
        ("second_is_too_large", "compile"),
    ],
)
def test_an_error_says_which_kernel_it_is_in(symbol, rung):
    verdict = tried(symbol, rung)[rung]
    if verdict.status is Status.UNAVAILABLE:
        pytest.skip(verdict.summary)
    assert verdict.status is Status.REFUSED
    assert verdict.details["kernel"] == "second"
    assert verdict.summary.startswith("in kernel second: ")
    assert verdict.error.frame is None or "first" not in verdict.error.frame.source


def test_a_kernel_alone_is_not_named_in_its_error():
    verdict = tried("is_sick_alone", "lower")["lower"]
    assert verdict.status is Status.REFUSED
    assert "kernel" not in verdict.details
    assert verdict.summary.startswith("NotImplementedError")


@pytest.mark.parametrize(
    ("symbol", "level"),
    [("asks_for_the_kind", 2), ("asks_tpu_info", 1), ("asks_for_the_memory", 2)],
)
@pytest.mark.parametrize("chip", ["v5e", "v6e"])
def test_who_asks_for_the_machine_is_told_a_chip(symbol, level, chip):
    verdicts = tried(symbol, "interpret lower", chip=chip, reference=lambda x: x * 2)
    assert statuses(verdicts) == {"interpret": "passed", "lower": "passed"}
    assert verdicts["interpret"].details["pretend"]["level"] == level
    assert any(chip in note for note in notes(verdicts["interpret"]))


def test_a_chip_that_the_kernel_does_not_know_is_its_own_error():
    verdict = tried("asks_for_the_kind", "lower", chip="v4")["lower"]
    assert verdict.status is Status.REFUSED
    assert "TPU v4" in verdict.summary


@pytest.mark.parametrize("symbol", ["interprets", "interprets_by_params"])
def test_an_interpreter_of_its_own_is_set_aside_and_that_is_said(symbol):
    verdicts = tried(symbol, reference=lambda x: x * 2)
    assert statuses(verdicts) == dict.fromkeys(EVERY.split(), "passed")
    assert any("was set aside" in note for note in notes(verdicts["lower"]))


def test_the_command_climbs_a_mesh_of_devices():
    result = climb_file(
        wants.__file__,
        "gathers",
        args="f32[32,128]",
        reference="same",
        rungs=[Rung.SIMULATE, Rung.LOWER],
    )
    (report,) = result.reports
    assert report.passed, report
    assert {v.target for v in report.verdicts} >= {"default", "races", "eager", "v5e"}
    assert json.dumps(result.to_json())


def test_an_index_out_of_the_range_that_cases_give_is_seen():
    rows = wants.picks_cases()["in range"][0] + 2
    verdict = tried("picks_out_of_range", "simulate", args=(rows, wants.X))["simulate"]
    assert verdict.status is Status.REFUSED
    assert "Out-of-bounds" in verdict.summary
