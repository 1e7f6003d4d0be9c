"""Rung 2: the generic interpreter proves the arithmetic against the reference."""

from __future__ import annotations

import dataclasses

from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs.running import program_run, run_and_compare
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict


def attempt(problem: Problem, target: str, pretend: Pretend) -> Verdict:
    """Run the program with `interpret=True` and compare its numbers.

    Numbers that agree, of a program that turns a mask into numbers, are computed once more without
    XLA's algebraic simplifier. It rewrites `x * mask` into a select, which a TPU's compiler need
    not do: a kernel that masks NaN by multiplying is repaired by the interpreter and by nobody
    else.

    Raises:
      Exception: what the program raises while it is traced.
    """
    verdict = run_and_compare(problem, Rung.INTERPRET, target, True, pretend)
    if verdict.status is not Status.PASSED:
        return verdict
    program = program_run(problem, True, pretend)
    if program is not None and not program.turns_masks_into_numbers:
        return verdict
    literal = run_and_compare(
        problem, Rung.INTERPRET, target, True, pretend, simplify=False, optimise=False
    )
    if literal.status is not Status.WRONG:
        return verdict
    return dataclasses.replace(
        literal,
        summary="right only because XLA for the CPU turns x * mask into a select (zero times NaN "
        f"is NaN: use jnp.where); taken literally, {literal.summary}",
        details={**literal.details, "simplified": str(verdict.status)},
    )
