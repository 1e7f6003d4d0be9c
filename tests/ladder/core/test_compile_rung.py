"""The compile rung: the chip's compiler in a worker, and every kind of outcome it may report."""

import importlib.util

import numpy as np
import pytest

from ladder.core import sick_kernels as sick
from pallas_rungs.compilers.outcome import CompilerOutcome
from pallas_rungs.ladder import Status
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import trace
from pallas_rungs.ladder.rungs import attempt
from pallas_rungs.ladder.rungs.compile import verdict_of

needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not made for this machine"
)
PROGRAM = trace(sick.add_one, (sick.X,))


@needs_libtpu
def test_a_healthy_kernel_compiles():
    verdict = attempt(Problem("add", sick.add_one, (sick.X,)), "compile", "v5e")
    assert verdict.status is Status.PASSED, verdict.summary


@needs_libtpu
def test_blocks_that_do_not_fit_are_refused_with_their_bytes():
    x = np.ones((2048, 2048), np.float32)
    posed = Problem("too large", sick.too_large, (x,), sick.add_one_reference)
    assert attempt(posed, "lower").status is Status.PASSED
    verdict = attempt(posed, "compile", "v5e")
    assert verdict.status is Status.REFUSED
    assert verdict.details["memory"]["used"] > verdict.details["memory"]["limit"] == 16 * 2**20
    assert "smaller" in verdict.error.advice


@needs_libtpu
def test_a_program_without_arguments_compiles():
    def counts():
        return sick.add_one(np.zeros((32, 128), np.float32))

    verdict = attempt(Problem("counts", counts), "compile", "v5e")
    assert verdict.status is Status.PASSED, verdict.summary


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("compiled", Status.PASSED),
        ("refused", Status.REFUSED),
        ("crashed", Status.CRASHED),
        ("timed out", Status.TIMED_OUT),
        ("deadlocked", Status.DEADLOCKED),
        ("unavailable", Status.UNAVAILABLE),
    ],
)
def test_every_outcome_is_a_verdict(kind, status):
    outcome = CompilerOutcome(kind, error_type="SIGABRT", message="Check failed: x", cached=True)
    verdict = verdict_of(outcome, "v5e", PROGRAM)
    assert verdict.status is status
    assert verdict.cached
    assert verdict.target == "v5e"
    assert (verdict.error is None) == (status is Status.PASSED)


def test_an_outcome_that_was_never_agreed_on_is_an_error():
    with pytest.raises(ValueError, match="'melted'"):
        verdict_of(CompilerOutcome("melted"), "v5e", PROGRAM)


def test_a_libtpu_too_old_for_the_chip_is_not_the_kernels_fault():
    outcome = CompilerOutcome("refused", "JaxRuntimeError", "Invalid TPU external name: v9")
    assert verdict_of(outcome, "v5e", PROGRAM).status is Status.UNAVAILABLE
