"""Every kernel on every rung that needs no chip, each of its cases, and on its chips' compiler.

The first two cases below the compiler are in test_first_cases.py.
"""

from functools import partial

import jax
import pytest

from pallas_rungs.kernels.catalogue import KERNELS, Kernel
from pallas_rungs.kernels.flash_attention import output_and_gradients
from pallas_rungs.ladder import Rung, Status
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs import attempt
from unit.kernels.climbs import passes, passes_in_the_simulator, problem_of

CHIPS = ("v5e", "v6e", "tpu7x")
BY_NAME = {kernel.name: kernel for kernel in KERNELS}
COMPILED = [kernel for kernel in KERNELS if kernel.chips]


def named(kernel: Kernel) -> str:
    return kernel.name


# The generic interpreter sees nothing that the simulator does not, and the drawn shapes are for it.
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_the_other_cases_pass_below_the_compiler(kernel: Kernel, subtests: pytest.Subtests) -> None:
    for case in kernel.cases()[2:]:
        with subtests.test(case.name):
            problem = problem_of(kernel, case)
            passes_in_the_simulator(kernel, problem, on_two_cores=False)
            passes(kernel, problem, Rung.LOWER)


@pytest.mark.parametrize("kernel", COMPILED, ids=named)
def test_the_kernel_compiles_for_its_chips(kernel: Kernel, subtests: pytest.Subtests) -> None:
    assert set(CHIPS) <= set(kernel.chips)
    cases = kernel.cases()
    for case in {case.name: case for case in (cases[1], cases[-1])}.values():
        problem = problem_of(kernel, case)
        for chip in CHIPS:
            with subtests.test(f"{case.name} on {chip}"):
                passes(kernel, problem, Rung.COMPILE, chip)


@pytest.mark.parametrize("chip", CHIPS)
def test_attention_compiles_in_blocks_of_512_too(chip: str) -> None:
    x = jax.ShapeDtypeStruct((2, 1100, 64), jax.numpy.float32)
    problem = Problem("default blocks", partial(output_and_gradients, causal=True), (x,) * 4)
    verdict = attempt(problem, Rung.COMPILE, chip)
    assert verdict.status == Status.PASSED, verdict


@pytest.mark.parametrize("chip", CHIPS)
def test_offsets_of_four_are_refused_by_the_compiler(chip: str) -> None:
    kernel = BY_NAME["add_by_offsets"]
    assert not kernel.chips
    problem = problem_of(kernel, kernel.cases()[0])
    assert attempt(problem, Rung.LOWER, chip).status == Status.PASSED
    verdict = attempt(problem, Rung.COMPILE, chip)
    assert verdict.status == Status.REFUSED, verdict
    assert verdict.error is not None
    assert "multiple of 128" in verdict.error.message, verdict
