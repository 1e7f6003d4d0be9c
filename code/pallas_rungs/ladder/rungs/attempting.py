"""Trying one problem on one rung: never raises for a fault of the kernel's."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from pallas_rungs.compilers.chips import chip_named
from pallas_rungs.ladder.diagnose import in_full, kernel_error
from pallas_rungs.ladder.estimate_beside import OnCompiled
from pallas_rungs.ladder.machine import stay_on_cpu
from pallas_rungs.ladder.next_steps import next_step
from pallas_rungs.ladder.pretend import (
    DEFAULT_CHIP,
    Pretend,
    why_name_the_chip,
    why_without_kernel,
)
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import describe_arguments
from pallas_rungs.ladder.rungs import compile as compile_rung
from pallas_rungs.ladder.rungs import interpret, lower, simulate, trace
from pallas_rungs.ladder.source_frames import defined_at, raised_by_ladder
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict

Try = Callable[[Problem, str, Pretend], Verdict]

_TRIES: dict[Rung, Try] = {
    Rung.TRACE: trace.attempt,
    Rung.INTERPRET: interpret.attempt,
    Rung.SIMULATE: simulate.attempt,
    Rung.LOWER: lower.attempt,
}


_SAID: WeakKeyDictionary[Problem, dict[str, Status]] = WeakKeyDictionary()
"""What the rungs said of a problem so far, by the verdict's label."""


def attempt(
    problem: Problem,
    rung: Rung | str,
    target: str = "",
    *,
    chip: str = DEFAULT_CHIP,
    time_limit: float = 120.0,
    cache: bool = False,
    on_compiled: OnCompiled | None = None,
) -> Verdict:
    """Try `problem` on one rung in this process (the compile rung uses a worker).

    Args:
      problem: what to try.
      rung: which rung.
      target: the chip for lower and compile, the setting for simulate ("default", "races", …);
        empty for the default.
      chip: the chip to name on the lower rungs when the program asks for one.
      time_limit: seconds that the compiler may take.
      cache: let the compile rung read and write the disk cache.
      on_compiled: called by the compile rung with a program that compiled for a TPU, and what an
        estimate of it is made of.

    Returns:
      The verdict. Faults of the kernel, of its reference and of the tools are verdicts too.

    Raises:
      ValueError: the chip or rung is unknown, or the rung is `chip`, which nothing here can run.
      KeyboardInterrupt: as always.
    """
    rung = Rung(rung)
    stay_on_cpu()
    if rung is Rung.CHIP:
        raise ValueError("the chip rung needs a chip; it cannot be tried here")
    if rung in (Rung.LOWER, Rung.COMPILE):
        chip = target = chip_named(target or chip).name
        start = Pretend(chip, 1, "lowering needs to know the chip")
    else:
        start = Pretend(chip_named(chip).name, 0)
        target = (target or "default") if rung is Rung.SIMULATE else ""
    began = time.perf_counter()
    tried = (
        partial(compile_rung.attempt, time_limit=time_limit, cache=cache, on_compiled=on_compiled)
        if rung is Rung.COMPILE
        else _TRIES[rung]
    )
    verdict = _escalating(lambda pretend: _guarded(tried, rung, problem, target, pretend), start)
    details: dict[str, Any] = {"arguments": describe_arguments(problem.args), **verdict.details}
    said = _SAID.setdefault(problem, {})
    if step := next_step(verdict, said):
        details["next"] = step
        details["before"] = {label: str(status) for label, status in said.items()}
    said[verdict.label] = verdict.status
    return dataclasses.replace(
        verdict, details=details, seconds=round(time.perf_counter() - began, 4)
    )


def _guarded(tried: Try, rung: Rung, problem: Problem, target: str, pretend: Pretend) -> Verdict:
    try:
        with pretend.applied():
            verdict = tried(problem, target, pretend)
    except (Exception, SystemExit) as error:
        if raised_by_ladder(error):
            raise
        found = kernel_error(error, defined_at(problem.factory or problem.function))
        verdict = Verdict.of(
            rung, Status.REFUSED, target, summary=f"{found.type}: {found.message}", error=found
        )
    return dataclasses.replace(verdict, details={**verdict.details, "pretend": pretend.to_json()})


def _escalating(tried: Callable[[Pretend], Verdict], start: Pretend) -> Verdict:
    """Try ever higher levels while the outcome asks for it; keep the first if none helps."""
    pretend = start
    first = verdict = tried(pretend)
    while why := _why_higher(verdict, pretend.level):
        pretend = pretend.raised(why)
        verdict = tried(pretend)
    return first if _why_higher(verdict, start.level) else verdict


def _why_higher(verdict: Verdict, level: int) -> str:
    if verdict.status is Status.NO_KERNEL:
        return "" if verdict.details["kernels"] else why_without_kernel(level)
    if verdict.observed is Status.REFUSED and verdict.error is not None:
        return why_name_the_chip(level, in_full(verdict.error))
    return ""
