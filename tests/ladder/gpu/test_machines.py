"""Which machine a kernel is for, and what comes of asking the other one."""

import jax
import pytest

from ladder.gpu import sick_gpu_kernels as sick
from pallas_rungs.compilers import cuda
from pallas_rungs.compilers.chips import GPU, TPU
from pallas_rungs.ladder import Status, climb
from pallas_rungs.ladder.pretend import machine_asked_for, why_name_the_chip
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs import machine_of, simulator_settings
from pallas_rungs.ladder.rungs.simulate_gpu import races_found


def problem(function):
    return Problem(function.__name__, function, (sick.X,), sick.doubled)


@pytest.mark.parametrize(
    ("function", "machine"),
    [
        (sick.doubles, GPU),
        (sick.doubles_in_triton, GPU),
        (sick.plain_doubles, TPU),
        (sick.for_a_tpu, TPU),
    ],
)
def test_a_kernel_is_for_the_machine_that_it_names(function, machine):
    assert machine_of(problem(function)) is machine


def test_a_gpu_kernel_climbs_for_h100_when_no_chip_is_named():
    report = climb(sick.doubles, sick.X, reference=sick.doubled, rungs=["simulate", "lower"])
    assert report.passed
    assert [v.label for v in report.verdicts] == [
        "simulate default",
        "simulate races",
        "lower h100",
    ]


@pytest.mark.parametrize(
    ("function", "asked", "is_a", "written_for", "instead"),
    [
        (sick.doubles, "v5e", "TPU", "GPU", "h100"),
        (sick.doubles_in_triton, "v6e", "TPU", "GPU", "h100"),
        (sick.for_a_tpu, "b200", "GPU", "TPU", "v5e"),
    ],
)
def test_a_chip_of_the_other_machine_is_one_clear_verdict(
    function, asked, is_a, written_for, instead
):
    report = climb(function, sick.X, rungs=["simulate", "lower", "compile"], chips=[asked])
    said = (
        f"{asked} is a {is_a}, and this kernel is written for a {written_for}: try it for {instead}"
    )
    assert {v.status for v in report.verdicts} == {Status.TOOL_CANNOT}
    assert {v.summary for v in report.verdicts} == {said}


def test_a_kernel_that_names_no_machine_lowers_for_both():
    report = climb(sick.plain_doubles, sick.X, rungs=["lower"], chips=["v5e", "a100"])
    assert report.passed


def test_simulator_settings_follow_the_machine():
    assert list(simulator_settings(problem(sick.doubles), "h100")) == ["default", "races"]
    assert list(simulator_settings(problem(sick.plain_doubles), "h100")) == ["default"]
    assert list(simulator_settings(problem(sick.plain_doubles), "v5e")) == ["default", "races"]


def test_the_simulator_forgets_a_kernel_that_failed():
    sound = Problem("doubles", sick.doubles, (sick.X,), sick.doubled)
    for sad in (sick.forgets_to_commit, sick.waits_for_two_arrivals_of_one):
        report = climb(sad, sick.X, reference=sick.doubled, rungs=["simulate"], chips=["h100"])
        assert not report.passed
        assert not races_found()
        again = climb(sound.function, sick.X, reference=sick.doubled, rungs=["simulate"])
        assert again.passed


def test_the_gpu_asked_for_is_the_gpu_seen():
    """It returns plain jax.numpy on other machines, and a kernel on a Blackwell GPU."""
    verdict = climb(sick.chooses_by_its_machine, sick.X, rungs=["lower"], chips=["b200"]).of(
        "lower", "b200"
    )
    assert verdict.status is Status.PASSED
    assert verdict.details["kernels"] == 1
    assert verdict.details["pretend"]["level"] == 2
    assert jax.default_backend() == "cpu"


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: No supported GPU devices found, please specify an abstract GPU device",
        "AttributeError: 'Device' object has no attribute 'compute_capability'",
        "RuntimeError: this kernel requires a GPU",
        "ValueError: only CUDA is supported",
    ],
)
def test_errors_about_a_missing_gpu_ask_for_one(message):
    assert why_name_the_chip(0, message)
    assert machine_asked_for(message) is GPU


def test_errors_about_a_missing_tpu_ask_for_one():
    assert machine_asked_for("RuntimeError: needs a TPU, not a GPU") is TPU


def test_without_the_cuda_compiler_the_verdict_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cuda, "plugin_version", lambda: None)
    monkeypatch.setattr("sys.platform", "linux")
    verdict = climb(sick.doubles, sick.X, rungs=["compile"]).of("compile", "h100")
    assert verdict.status is Status.UNAVAILABLE
    assert f'-m pip install "jax-cuda13-plugin=={jax.__version__}"' in verdict.summary
    assert "nvidia-cuda-nvdisasm" in verdict.summary
