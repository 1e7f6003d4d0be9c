"""Rung 5: the chip's real compiler, without the chip: does it fit, does it compile?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pallas_rungs.compilers.chips import TPU, chip_named
from pallas_rungs.compilers.dumps import compile_for_estimate
from pallas_rungs.ir.memory_overflow import in_words, memory_overflow
from pallas_rungs.ladder.diagnose import error_from_text
from pallas_rungs.ladder.estimate_beside import Compiled, OnCompiled
from pallas_rungs.ladder.gaps import attribute
from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import Program
from pallas_rungs.ladder.rungs.export import export_traced
from pallas_rungs.ladder.rungs.tracing import (
    facts,
    for_another_machine,
    naming_the_kernel,
    no_kernel,
    refused,
    traced,
)
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import KernelError, Verdict

if TYPE_CHECKING:
    from pallas_rungs.compilers.outcome import CompilerOutcome


_STATUS_OF = {
    "compiled": Status.PASSED,
    "refused": Status.REFUSED,
    "crashed": Status.CRASHED,
    "timed out": Status.TIMED_OUT,
    "deadlocked": Status.DEADLOCKED,
    "unavailable": Status.UNAVAILABLE,
}
_PTXAS_SAID = re.compile(r"ptxas .*?error\s*: (.+)")
_OLD_COMPILER = "Invalid TPU external name"


def attempt(
    problem: Problem,
    target: str,
    pretend: Pretend,
    *,
    time_limit: float = 120.0,
    cache: bool = False,
    on_compiled: OnCompiled | None = None,
) -> Verdict:
    """Export the program and compile it for the chip in a worker process.

    Args:
      problem: what to try.
      target: the chip.
      pretend: how the chip was named.
      time_limit: seconds that the compiler may take.
      cache: read and write the disk cache.
      on_compiled: called with a program that compiled, and what an estimate of it is made of.

    Raises:
      Exception: what the program raises while it is traced.
    """
    program = traced(problem)
    if not program.used_kernels:
        return no_kernel(Rung.COMPILE, target, program)
    if verdict := for_another_machine(Rung.COMPILE, target, program, target):
        return verdict
    try:
        exported = export_traced(program, pretend)
    except (Exception, SystemExit) as error:
        return refused(Rung.COMPILE, target, error, program, False)
    from pallas_rungs.compilers.by_chip import compile_exported

    outcome = None
    if on_compiled is not None and chip_named(target).machine is TPU:
        dumps = compile_for_estimate(
            exported.serialized, target, time_limit=time_limit, cache=cache
        )
        if dumps.outcome.kind == "compiled":
            on_compiled(Compiled(program, target, exported.devices, dumps))
        if dumps.outcome.kind != "crashed":  # else dumping may be what ended it
            outcome = dumps.outcome
    if outcome is None:
        outcome = compile_exported(exported.serialized, target, time_limit=time_limit, cache=cache)
    return verdict_of(outcome, target, program, {"devices": exported.devices})


def verdict_of(
    outcome: CompilerOutcome, target: str, program: Program, details: dict[str, Any] | None = None
) -> Verdict:
    """Turn a compiler's outcome into a verdict.

    Args:
      outcome: what the worker reported.
      target: the chip.
      program: the traced program, for its kernels and features.
      details: further facts for the verdict.

    Raises:
      ValueError: the outcome's kind is not one of those agreed on.
    """
    if outcome.kind not in _STATUS_OF:
        raise ValueError(f"the compiler's worker reported {outcome.kind!r}, which is no outcome")
    status = _STATUS_OF[outcome.kind]
    told = {
        **facts(program, False),
        **(details or {}),
        "compile seconds": outcome.seconds,
        "cpu seconds": outcome.cpu_seconds,
        "peak memory bytes": outcome.peak_memory_bytes,
    }
    if outcome.analysis:
        told["analysis"] = outcome.analysis
    error: KernelError | None = None
    summary = f"compiles for {target}{_needs(outcome.analysis)}"
    if status is not Status.PASSED:
        error = error_from_text(
            outcome.error_type, outcome.message, program.source_meant(outcome.message)
        )
        died = status is Status.CRASHED  # its message says by what
        summary = error.message if died or not error.type else f"{error.type}: {error.message}"
    if overflow := memory_overflow(outcome.message) if status is Status.REFUSED else None:
        told["memory"] = overflow
        summary = in_words(overflow)
    if refusal := _PTXAS_SAID.search(outcome.message) if status is Status.REFUSED else None:
        summary = f"ptxas: {refusal[1]}"
    if status is Status.REFUSED and _OLD_COMPILER in outcome.message:
        status = Status.UNAVAILABLE
        summary = f"this libtpu does not know {target}; install the one that this jax names"
    verdict = Verdict.of(
        Rung.COMPILE, status, target, summary, error=error, details=told, cached=outcome.cached
    )
    return attribute(naming_the_kernel(verdict, program), program.features)


def _needs(analysis: dict[str, Any]) -> str:
    """Say what the kernels of a GPU program need, as far as their compiler tells."""
    told = []
    for kernel in analysis.get("kernels", ()):
        needs = [f"{kernel['registers']} registers"] if kernel["registers"] else []
        if kernel["shared_bytes"]:
            needs.append(f"{kernel['shared_bytes']:,} bytes of shared memory")
        if spilled := kernel["spill_store_bytes"]:
            needs.append(f"spills {spilled} bytes a thread")
        elif kernel["spill_store_bytes"] is None and kernel["stack_bytes"]:
            needs.append(f"a stack of {kernel['stack_bytes']} bytes a thread")
        told.append(", ".join(needs))
    return f": {'; '.join(told)}" if any(told) else ""
