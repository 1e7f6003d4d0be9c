"""Climbing: try one program on every rung and report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pallas_rungs.compilers.chips import chip_named
from pallas_rungs.ladder.estimate_beside import Compiled, estimate_compiled, with_estimate
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.status import EVERY_RUNG_HERE, Rung

if TYPE_CHECKING:
    from pallas_rungs.ladder.verdict import Verdict


def climb(
    function: Callable[..., Any],
    *args: Any,
    reference: Callable[..., Any] | None = None,
    rungs: Iterable[Rung | str] = EVERY_RUNG_HERE,
    chips: Iterable[str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    name: str | None = None,
    simulations: Mapping[str, Mapping[str, Any]] | None = None,
    time_limit: float = 120.0,
    cache: bool = False,
    estimates: bool = False,
) -> Report:
    """Try `function(*args)` on the rungs and report.

    Rungs 1 to 4 run in this process, the compiler in a worker process. A rung that fails never
    keeps the others from being tried.

    Args:
      function: calls a Pallas kernel.
      *args: its arguments: arrays and pytrees of arrays are traced, anything else is static.
      reference: called with the same arguments as NumPy arrays, floats widened to float64; returns
        what should come out. Without it the numbers stay unchecked.
      rungs: which rungs to try.
      chips: which chips to lower and compile for; the first says which machine's simulator is
        asked. By default v5e, and h100 for kernels that are plainly written for a GPU.
      rtol: relative tolerance; the default follows from the dtype, see `compare`.
      atol: absolute tolerance; likewise.
      name: what the report calls the program; the function's name by default.
      simulations: further simulator settings, name → keyword arguments of `pltpu.InterpretParams`.
      time_limit: seconds that the compiler may take for each chip.
      cache: let the compile rung read and write the disk cache.
      estimates: let an estimate stand beside what compiles for a TPU.

    Returns:
      The report: one verdict for each rung and target.

    Raises:
      ValueError: a rung or chip is unknown.
    """
    problem = Problem(
        name=name or str(getattr(function, "__name__", type(function).__name__)),
        function=function,
        args=args,
        reference=reference,
        rtol=rtol,
        atol=atol,
        simulations=dict(simulations or {}),
    )
    return climb_problem(
        problem, rungs=rungs, chips=chips, time_limit=time_limit, cache=cache, estimates=estimates
    )


def climb_problem(
    problem: Problem,
    *,
    rungs: Iterable[Rung | str] = EVERY_RUNG_HERE,
    chips: Iterable[str] | None = None,
    time_limit: float = 120.0,
    cache: bool = False,
    estimates: bool = False,
) -> Report:
    """Try a problem on the rungs and report; see `climb`.

    Raises:
      ValueError: a rung or chip is unknown.
    """
    verdicts = tuple(
        verdicts_of(
            problem,
            rungs=rungs,
            chips=chips,
            time_limit=time_limit,
            cache=cache,
            estimates=estimates,
        )
    )
    return Report(problem.name, verdicts)


def verdicts_of(
    problem: Problem,
    *,
    rungs: Iterable[Rung | str] = EVERY_RUNG_HERE,
    chips: Iterable[str] | None = None,
    time_limit: float = 120.0,
    cache: bool = False,
    estimates: bool = False,
) -> Iterator[Verdict]:
    """Yield the verdicts one by one, from the lowest rung up; see `climb`.

    Raises:
      ValueError: a rung or chip is unknown.
    """
    from pallas_rungs.ladder.rungs import attempt

    asked = sorted({Rung(rung) for rung in rungs}, key=lambda rung: rung.number)
    names = [chip_named(chip).name for chip in (default_chips(problem) if chips is None else chips)]
    first_chip = names[0] if names else default_chips(problem)[0]
    for rung in asked:
        for target in targets_of(problem, rung, names):
            compiled: list[Compiled] = []
            verdict = attempt(
                problem,
                rung,
                target,
                chip=first_chip,
                time_limit=time_limit,
                cache=cache,
                on_compiled=compiled.append if estimates else None,
            )
            if compiled:
                verdict = with_estimate(verdict, estimate_compiled(compiled[-1], problem.name))
            yield verdict


def default_chips(problem: Problem) -> tuple[str, ...]:
    """Return the chips that a problem is tried for when none is named."""
    from pallas_rungs.ladder.rungs import machine_of

    return (machine_of(problem).default_chip,)


def targets_of(problem: Problem, rung: Rung, chips: Iterable[str]) -> list[str]:
    """Return what a rung is to be tried with: chips, simulator settings, or nothing special.

    The simulator is that of the first chip's machine.
    """
    from pallas_rungs.ladder.rungs import simulator_settings

    names = list(dict.fromkeys(chips))
    if rung in (Rung.LOWER, Rung.COMPILE):
        return names
    if rung is not Rung.SIMULATE:
        return [""]
    return list(simulator_settings(problem, names[0] if names else default_chips(problem)[0]))
