"""Trying a kernel's case on the rungs below the compiler, and what must come of it."""

import functools

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.catalogue import Kernel
from pallas_rungs.ladder import Report, Rung, Status
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs import attempt, simulator_settings


def problem_of(kernel: Kernel, case: Case) -> Problem:
    return Problem(
        name=f"{kernel.name}: {case.name}",
        function=kernel.call,
        args=case.args,
        reference=kernel.reference,
        rtol=case.rtol,
        atol=case.atol,
    )


@functools.lru_cache(maxsize=4)  # the rungs of one problem share what was traced
def first_problem(kernel: Kernel, number: int) -> Problem:
    """The problem of one of a kernel's cases, by its number."""
    return problem_of(kernel, kernel.cases()[number])


def passes(kernel: Kernel, problem: Problem, rung: Rung, target: str = "") -> None:
    """Tries a problem on one rung, with one of the simulator's settings or for one chip."""
    verdict = attempt(problem, rung, target, chip="v5e")
    wanted = Status.TOOL_CANNOT if rung in kernel.tool_cannot else Status.PASSED
    assert verdict.status == wanted, Report(problem.name, (verdict,))


def passes_in_the_simulator(kernel: Kernel, problem: Problem, *, on_two_cores: bool) -> None:
    """Tries a problem in the simulator, in memory filled with NaN, and looks for races.

    The default setting is that without the races, and is left out. Two cores ask for one more
    compilation; copies that are made at once do not.
    """
    left_out = {"default"} if on_two_cores else {"default", "two cores"}
    settings = [name for name in simulator_settings(problem) if name not in left_out]
    assert "races" in settings
    for setting in settings:
        passes(kernel, problem, Rung.SIMULATE, setting)
