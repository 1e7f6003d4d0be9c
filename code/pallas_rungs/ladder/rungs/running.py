"""What the two rungs that compute numbers share: run, compare, attribute."""

from __future__ import annotations

import dataclasses
from typing import Any
from weakref import WeakKeyDictionary

from pallas_rungs.compilers.chips import GPU, chip_named
from pallas_rungs.ladder import eager
from pallas_rungs.ladder.advice import REFERENCE_TAKES
from pallas_rungs.ladder.compare import compare, reference_result
from pallas_rungs.ladder.diagnose import kernel_error
from pallas_rungs.ladder.gaps import attribute
from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import Program, trace
from pallas_rungs.ladder.references import fits
from pallas_rungs.ladder.rungs.tracing import (
    callable_for,
    explaining,
    facts,
    for_another_machine,
    no_kernel,
    tool_cannot,
)
from pallas_rungs.ladder.rungs.tracing import refused as refused_by_rung
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict

_TRACED: WeakKeyDictionary[Problem, dict[Any, Program]] = WeakKeyDictionary()
"""What a problem was traced to: what differs between two runs only while they run shares it."""


def run_and_compare(
    problem: Problem,
    rung: Rung,
    target: str,
    interpret: Any,
    pretend: Pretend,
    *,
    simplify: bool = True,
    optimise: bool = True,
) -> Verdict:
    """Run the program with `interpret` on the CPU and compare its numbers.

    A problem is traced and compiled once for the same `interpret` and `pretend`. For `simplify` and
    `optimise` see `Program.run`.

    Raises:
      Exception: what the program raises while it is traced.
    """
    function = callable_for(problem, interpret)
    kept = _TRACED.setdefault(problem, {})
    key = _key(interpret, pretend)
    try:
        program = kept.get(key) or trace(function, problem.args)
        kept[key] = program
    except eager.CONCRETIZATION_ERRORS:
        launches = eager.Launches()
        try:
            result = eager.run(function, problem.args, interpret, launches)
        except (Exception, SystemExit) as error:
            if not launches.calls:
                raise
            return refused_by_rung(rung, target, error, launches.as_program(), interpret)
        program = launches.as_program()
        if not program.kernels:
            return no_kernel(rung, target, program)
        return judge(problem, rung, target, program, result, interpret)
    if not program.kernels:
        return no_kernel(rung, target, program)
    if rung is Rung.SIMULATE and (verdict := _not_simulated(target, program, pretend.chip)):
        return verdict
    platform = chip_named(pretend.chip).machine.platform
    try:
        result = program.run(interpret, platform=platform, simplify=simplify, optimise=optimise)
    except (Exception, SystemExit) as error:
        return refused_by_rung(rung, target, error, program, interpret)
    verdict = judge(problem, rung, target, program, result, interpret)
    if verdict.status in (Status.PASSED, Status.UNCHECKED) and not program.used_kernels:
        return no_kernel(rung, target, program)
    return verdict


def _not_simulated(target: str, program: Program, chip: str) -> Verdict | None:
    """Return the verdict on a program that the simulator of the chip's machine is not for."""
    if verdict := for_another_machine(Rung.SIMULATE, target, program, chip):
        return verdict
    if chip_named(chip).machine is GPU and not program.features.mosaic_gpu:
        name = "Triton kernels have no simulator (Pallas has one for Mosaic GPU only)"
        return tool_cannot(Rung.SIMULATE, target, program, name)
    return None


def program_run(problem: Problem, interpret: Any, pretend: Pretend) -> Program | None:
    """Return the program that `run_and_compare` traced; None for one that runs eagerly only."""
    return _TRACED.get(problem, {}).get(_key(interpret, pretend))


def _key(interpret: Any, pretend: Pretend) -> tuple[str, str, int]:
    return repr(interpret), pretend.chip, pretend.level


def judge(
    problem: Problem, rung: Rung, target: str, program: Program, result: Any, interpret: Any
) -> Verdict:
    """Compare a result with the problem's reference and return the verdict."""
    details = facts(program, interpret)
    if problem.kernel_alone:
        details["kernel alone"] = list(problem.kernel_alone)
    if problem.reference is None:
        summary = "ran; there is no reference to compare its numbers with"
        return Verdict.of(rung, Status.UNCHECKED, target, summary, details=details)
    try:
        want, precision = reference_result(problem.reference, problem.args)
    except (Exception, SystemExit) as error:
        found = kernel_error(error)
        if not fits(problem.reference, problem.args):
            found = dataclasses.replace(found, advice=REFERENCE_TAKES)
        return Verdict.of(
            rung,
            Status.REFERENCE_FAILED,
            target,
            summary=f"the reference raised {found.type}: {found.message}",
            error=found,
            details=details,
        )
    details["reference"] = precision
    difference = compare(
        result,
        want,
        rtol=problem.rtol,
        atol=problem.atol,
        rounds_to=program.features.rounds_to,
        exponentials=program.features.exponentials,
        tilings=program.index_maps.tilings,
    )
    if difference is None:
        return Verdict.of(rung, Status.PASSED, target, "agrees with the reference", details=details)
    details |= explaining(program, details, difference.patterns)
    verdict = Verdict.of(
        rung, Status.WRONG, target, str(difference), difference=difference, details=details
    )
    return attribute(verdict, program.features)
