"""A chip is named as insistently as the program asks, and the verdict says so."""

import jax
import pytest

from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import Status
from pallas_rungs.ladder.pretend import Pretend, why_name_the_chip
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs import attempt


@pytest.mark.parametrize(
    ("function", "level"),
    [
        (sick.add_one, 0),
        (sick.asks_the_chip, 1),
        (sick.falls_back, 2),
        (sick.refuses_a_cpu, 2),
    ],
)
def test_the_level_follows_the_program(function, level):
    posed = Problem(function.__name__, function, (sick.X,), sick.add_one_reference)
    for rung in ("trace", "interpret", "simulate"):
        verdict = attempt(posed, rung)
        assert verdict.status is Status.PASSED, verdict.summary
        assert verdict.details["pretend"]["level"] == level
        assert bool(verdict.details["pretend"]["why"]) == (level > 0)
    lowered = attempt(posed, "lower")
    assert lowered.status is Status.PASSED, lowered.summary
    assert lowered.details["pretend"]["level"] == max(level, 1)


def test_the_chip_asked_for_is_the_chip_seen():
    seen = []

    def looks(x):
        seen.append(jax.devices()[0].device_kind)
        return sick.falls_back(x)

    attempt(Problem("looks", looks, (sick.X,)), "lower", "v6e")
    assert seen[-1] == "TPU v6 lite"
    assert jax.devices()[0].platform == "cpu"
    assert jax.default_backend() == "cpu"


def test_code_that_asks_for_the_default_device_gets_the_chip():
    def looks(x):
        device = jax.config.jax_default_device
        return sick.add_one(x) if getattr(device, "platform", "cpu") == "tpu" else x + 1

    verdict = attempt(Problem("looks", looks, (sick.X,), sick.add_one_reference), "interpret")
    assert verdict.status is Status.PASSED
    assert verdict.details["pretend"]["level"] == 3


def test_an_error_that_no_level_mends_is_told_as_first_seen():
    def never(x):
        raise RuntimeError("unsupported backend: cpu")

    verdict = attempt(Problem("never", never, (sick.X,)), "trace")
    assert verdict.status is Status.REFUSED
    assert verdict.details["pretend"]["level"] == 0


@pytest.mark.parametrize(
    "message",
    [
        "ValueError: Unsupported TPU device kind: cpu",
        "RuntimeError: This kernel requires a TPU",
        "NotImplementedError: not supported on backend cpu",
        "AttributeError: 'Device' object has no attribute 'num_cores'",
        "AttributeError: ",
    ],
)
def test_errors_about_the_machine_ask_for_the_chip(message):
    assert why_name_the_chip(0, message)


@pytest.mark.parametrize(
    "message",
    [
        "ValueError: The Pallas TPU lowering currently requires that the last two dimensions",
        "NotImplementedError: MLIR translation rule for primitive 'x' not found for platform cpu",
        "IndexError: Out-of-bounds block index (8, 0)",
        "TypeError: add() takes 2 positional arguments but 3 were given",
    ],
)
def test_other_errors_do_not(message):
    assert not why_name_the_chip(0, message)


def test_an_unknown_chip_is_refused():
    with pytest.raises(ValueError, match="unknown chip"), Pretend("v99", 1).applied():
        pass
