"""Rung 3 for GPUs: the simulator proves barriers, copies, fresh memory and races of Mosaic GPU.

It runs warpgroups as threads of this process and makes every TMA copy at once, so that a missing
wait changes no number: only the race detector sees it. `wgmma` is not checked for races.
"""

from __future__ import annotations

from typing import Any

from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs.running import run_and_compare
from pallas_rungs.ladder.rungs.simulating import (
    deadlocked,
    forget_failed_effects,
    refused_in_passing,
    unlogged_callbacks,
)
from pallas_rungs.ladder.rungs.standstill_gpu import ended_at_a_standstill
from pallas_rungs.ladder.rungs.tracing import features_of
from pallas_rungs.ladder.status import Rung
from pallas_rungs.ladder.verdict import Verdict

ALWAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "races": {"detect_races": True},
}
"""The settings that every kernel is tried with. Fresh memory holds NaN in both."""


def settings(problem: Problem) -> dict[str, dict[str, Any]]:
    """Return the settings to try, name → keyword arguments of `plgpu.InterpretGPUParams`.

    A kernel for Triton has no simulator, and one verdict says so.
    """
    features = features_of(problem)
    if features is not None and not features.mosaic_gpu:
        return {"default": {}}
    own = {name: dict(values) for name, values in problem.simulations.items()}
    return ALWAYS | own


def attempt(problem: Problem, target: str, pretend: Pretend) -> Verdict:
    """Run the program in the simulator with the setting `target` and compare its numbers.

    Raises:
      ValueError: the setting is unknown.
      Exception: what the program raises while it is traced.
    """
    from jax.experimental.pallas import mosaic_gpu as plgpu

    known = ALWAYS | dict(problem.simulations)
    if target not in known:
        names = ", ".join(known)
        raise ValueError(f"no simulator setting {target!r}; there are {names}")
    reset_simulator()
    try:
        with unlogged_callbacks(), ended_at_a_standstill() as standstill:
            verdict = run_and_compare(
                problem,
                Rung.SIMULATE,
                target,
                plgpu.InterpretGPUParams(**known[target]),
                pretend,
                optimise=False,
            )
        raced = races_found()
    finally:
        reset_simulator()
    if standstill and not raced:
        return deadlocked(verdict, standstill)
    if raced and verdict.error is None:
        return refused_in_passing(verdict, "RACE DETECTED")
    return verdict


def races_found() -> bool:
    """True when the simulator's last run noted a race."""
    from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks

    return bool(getattr(gpu_callbacks._races, "races_found", False))


def reset_simulator() -> None:
    """Forget earlier runs: a failed one leaves memory, barriers, races and its error behind."""
    from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks

    forget_failed_effects()
    gpu_callbacks.reset_gpu_interpret_mode_state()
