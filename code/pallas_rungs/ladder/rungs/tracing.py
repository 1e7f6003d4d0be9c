"""Tracing a problem for a rung, with the eager way out, and what that tells a verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from pallas_rungs.compilers.chips import GPU, TPU, Machine, chip_named
from pallas_rungs.ladder import eager
from pallas_rungs.ladder.diagnose import in_full, kernel_error
from pallas_rungs.ladder.features import Features
from pallas_rungs.ladder.findings import PAST_THE_END, SWAPPED
from pallas_rungs.ladder.gaps import attribute
from pallas_rungs.ladder.kernel_lines import line_asking_for, line_reaching_past
from pallas_rungs.ladder.pretend import Pretend, machine_asked_for
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


def features_of(problem: Problem) -> Features | None:
    """Return what the problem's kernels use; None where it cannot be traced."""
    found = _looked_at(problem)
    return found if isinstance(found, Features) else None


def machine_of(problem: Problem) -> Machine:
    """Return the machine that the problem's kernels are plainly written for; a TPU if for none.

    A program that cannot be traced is for the machine that its error asks for.
    """
    found = _looked_at(problem)
    if isinstance(found, str):
        return machine_asked_for(found)
    return GPU if found.machines == (GPU,) else TPU


_LOOKED_AT: WeakKeyDictionary[Problem, Features | str] = WeakKeyDictionary()
"""What `_looked_at` saw, so that a problem is traced for it once."""


def _looked_at(problem: Problem) -> Features | str:
    """Trace the problem and return its features; else the error in full."""
    if problem not in _LOOKED_AT:
        try:
            with Pretend(level=1).applied():
                _LOOKED_AT[problem] = traced(problem).features
        except (Exception, SystemExit) as error:
            _LOOKED_AT[problem] = in_full(kernel_error(error))
    return _LOOKED_AT[problem]


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


def explaining(
    program: Program, told: dict[str, Any], patterns: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what a verdict's details say beyond `told` where the program is found at fault.

    A kernel that transposes has index maps that look swapped, so that those are told of only where
    the numbers differ by whole blocks, or a block index is past the end.

    Args:
      program: the traced program.
      told: what the details say already.
      patterns: what is regular about the wrong numbers.
    """
    found = program.index_maps.findings
    by_blocks = any("block" in pattern for pattern in patterns)
    if not by_blocks and all(finding.kind != PAST_THE_END for finding in found):
        found = tuple(finding for finding in found if finding.kind != SWAPPED)
    if not found:
        return {}
    kinds = list(dict.fromkeys(finding.kind for finding in found))
    return {
        "uses": [*told.get("uses", ()), *kinds],
        "index maps": [finding.told for finding in found],
    }


def no_kernel(rung: Rung, target: str, program: Program) -> Verdict:
    """Return the verdict on a program in which no kernel is left, or none that is used."""
    if program.kernels:
        summary = "no kernel is left in the program: nothing uses its result"
    else:
        summary = (
            "the function calls no Pallas kernel: with these arguments, the traced program is "
            "plain JAX"
        )
    details = {"kernels": len(program.kernels)}
    return Verdict.of(rung, Status.NO_KERNEL, target, summary=summary, details=details)


def refused(
    rung: Rung, target: str, error: BaseException, program: Program, interpret: Any
) -> Verdict:
    """Return the verdict on a traced program that raised, laid at the right door."""
    said = message_of(error)
    line = line_asking_for(said, program.kernels) or line_reaching_past(said, program.kernels)
    found = kernel_error(error, line or program.source_meant(said))
    details = facts(program, interpret)
    if rung in (Rung.INTERPRET, Rung.SIMULATE):
        details |= explaining(program, details)
    verdict = Verdict.of(
        rung,
        Status.REFUSED,
        target,
        summary=f"{found.type}: {found.message}",
        error=found,
        details=details,
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


def for_another_machine(rung: Rung, target: str, program: Program, chip: str) -> Verdict | None:
    """Return the verdict on a kernel that is written for another machine than the chip's, or None.

    Args:
      rung: the rung that it is tried on.
      target: the verdict's target.
      program: the traced program.
      chip: the chip's name.
    """
    machine, written_for = chip_named(chip).machine, program.features.machines
    if not written_for or machine in written_for:
        return None
    (other,) = written_for
    name = (
        f"{chip} is a {machine.name}, and this kernel is written for a {other.name}: "
        f"try it for {other.default_chip}"
    )
    return tool_cannot(rung, target, program, name)


def tool_cannot(rung: Rung, target: str, program: Program, name: str) -> Verdict:
    """Return the verdict on a program that this rung has no tool for."""
    return Verdict(
        rung,
        Status.TOOL_CANNOT,
        target,
        summary=name,
        observed=Status.UNAVAILABLE,
        details={**facts(program, False), "gap": name},
    )
