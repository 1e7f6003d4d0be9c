"""Rung 4: the kernel lowers to the compiler's input for a named chip."""

from __future__ import annotations

import jax

from pallas_rungs.compilers.chips import chip_named
from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs.tracing import (
    facts,
    for_another_machine,
    no_kernel,
    refused,
    traced,
)
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict


def attempt(problem: Problem, target: str, pretend: Pretend) -> Verdict:
    """Lower the program for the chip and count the kernels in the module.

    Raises:
      Exception: what the program raises while it is traced.
    """
    program = traced(problem)
    if not program.used_kernels:
        return no_kernel(Rung.LOWER, target, program)
    if verdict := for_another_machine(Rung.LOWER, target, program, target):
        return verdict
    machine = chip_named(target).machine
    try:
        staged = jax.jit(program.as_function(False)).trace(*program.arrays)
        module = staged.lower(lowering_platforms=(machine.platform,)).as_text()
    except (Exception, SystemExit) as error:
        return refused(Rung.LOWER, target, error, program, False)
    details = facts(program, False)
    count = sum(
        module.count(f"@{call}") + module.count(f'@"{call}"') for call in machine.kernel_calls
    )
    if not count:
        summary = "no kernel is left in the lowered module: nothing uses its result"
        return Verdict.of(Rung.LOWER, Status.NO_KERNEL, target, summary, details=details)
    details["kernels in the module"] = count
    return Verdict.of(Rung.LOWER, Status.PASSED, target, f"lowers for {target}", details=details)
