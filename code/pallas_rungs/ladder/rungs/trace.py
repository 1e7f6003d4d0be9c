"""Rung 1: the body traces; refs, shapes and index maps are legal."""

from __future__ import annotations

from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs.tracing import facts, no_kernel, traced
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict


def attempt(problem: Problem, target: str, pretend: Pretend) -> Verdict:
    """Trace the program and count its kernels.

    Raises:
      Exception: what the program raises while it is traced.
    """
    program = traced(problem)
    if not program.used_kernels:
        return no_kernel(Rung.TRACE, target, program)
    return Verdict.of(
        Rung.TRACE,
        Status.PASSED,
        target,
        summary=f"traces to a program with {_counted(program.kernel_names)}",
        details=facts(program, False),
    )


def _counted(names: list[str]) -> str:
    if len(names) == 1:
        return "1 kernel"
    more = ", …" if len(names) > 6 else ""
    return f"{len(names)} kernels: {', '.join(names[:6])}{more}"
