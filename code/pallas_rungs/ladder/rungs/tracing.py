"""Tracing a problem for a rung, with the eager way out, and what that tells a verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from pallas_rungs.ladder import eager
from pallas_rungs.ladder.diagnose import kernel_error
from pallas_rungs.ladder.gaps import attribute
from pallas_rungs.ladder.kernel_lines import line_asking_for
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import Program, trace
from pallas_rungs.ladder.source_frames import message_of
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict


def callable_for(problem: Problem, interpret: Any) -> Callable[..., Any]:
    """Return the function to try with `interpret`: from the problem's factory if it has one."""
    return problem.function if problem.factory is None else problem.factory(interpret)


def traced(problem: Problem, interpret: Any = False) -> Program:
    """Trace the problem; a program that runs eagerly only becomes the kernels it launches.

    Raises:
      Exception: what the program raises while it is traced and, where that is for want of values,
        also when it runs eagerly.
    """
    function = callable_for(problem, interpret)
    try:
        return trace(function, problem.args)
    except eager.CONCRETIZATION_ERRORS:
        return _launched(function, problem.args)


def _launched(function: Callable[..., Any], args: tuple[Any, ...]) -> Program:
    """Run eagerly and return the kernels launched, also where the interpreter cannot run them."""
    launches = eager.Launches()
    try:
        eager.run(function, args, True, launches)
    except (Exception, SystemExit) as error:
        if not launches.calls:
            raise
        program = launches.as_program()
        if refused(Rung.INTERPRET, "", error, program, True).status is not Status.TOOL_CANNOT:
            raise
        return program
    return launches.as_program()


def facts(program: Program, interpret: Any) -> dict[str, Any]:
    """Return what a verdict's details say about a traced program."""
    told: dict[str, Any] = {"kernels": len(program.kernels)}
    if program.kernels:
        told["kernel names"] = program.kernel_names
    if program.static:
        told["closed over"] = program.static
    if program.eager:
        told["eager"] = "the program runs eagerly only; its kernels were judged one by one"
    if uses := program.features.told:
        told["uses"] = uses
    if overridden := program.overridden(interpret):
        told["interpreter"] = overridden
    return told


def no_kernel(rung: Rung, target: str, program: Program) -> Verdict:
    """Return the verdict on a program in which no kernel is left, or none that is used."""
    if program.kernels:
        summary = "no kernel is left in the program: nothing uses its result"
    else:
        summary = "no Pallas kernel in the traced program: it fell back to plain JAX"
    details = {"kernels": len(program.kernels)}
    return Verdict.of(rung, Status.NO_KERNEL, target, summary=summary, details=details)


def refused(
    rung: Rung, target: str, error: BaseException, program: Program, interpret: Any
) -> Verdict:
    """Return the verdict on a traced program that raised, laid at the right door."""
    line = line_asking_for(message_of(error), program.kernels)
    found = kernel_error(error, line or program.source_meant(message_of(error)))
    verdict = Verdict.of(
        rung,
        Status.REFUSED,
        target,
        summary=f"{found.type}: {found.message}",
        error=found,
        details=facts(program, interpret),
    )
    return attribute(naming_the_kernel(verdict, program), program.features)


def naming_the_kernel(verdict: Verdict, program: Program) -> Verdict:
    """Return the verdict with the name of the kernel, of several, that its error is about."""
    if verdict.error is None:
        return verdict
    name = program.kernel_meant(verdict.error.full, verdict.error.frame)
    return in_kernel(verdict, name)


def in_kernel(verdict: Verdict, name: str) -> Verdict:
    """Return the verdict saying that its error is that kernel's; as it is for an empty name."""
    if not name:
        return verdict
    return dataclasses.replace(
        verdict,
        summary=f"in kernel {name}: {verdict.summary}",
        details={**verdict.details, "kernel": name},
    )


def for_another_machine(rung: Rung, target: str, program: Program) -> Verdict | None:
    """Return the verdict on a GPU kernel on a rung for TPU; None for others."""
    if not program.features.gpu:
        return None
    name = "this rung is for TPU kernels, and this one is written for a GPU"
    return Verdict(
        rung,
        Status.TOOL_CANNOT,
        target,
        summary=name,
        observed=Status.UNAVAILABLE,
        details={**facts(program, False), "gap": name},
    )
