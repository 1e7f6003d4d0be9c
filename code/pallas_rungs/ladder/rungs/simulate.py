"""Rung 3: the simulator of the chip's machine proves what arithmetic alone cannot."""

from __future__ import annotations

from typing import Any

from pallas_rungs.compilers.chips import GPU, chip_named
from pallas_rungs.ladder.pretend import DEFAULT_CHIP, Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs import simulate_gpu, simulate_tpu
from pallas_rungs.ladder.verdict import Verdict


def simulator_settings(problem: Problem, chip: str = DEFAULT_CHIP) -> dict[str, dict[str, Any]]:
    """Return the settings to try, name → keyword arguments of the simulator's parameters.

    The problem's own settings come last.

    Args:
      problem: what is to be tried.
      chip: a chip of the machine whose simulator is asked.

    Raises:
      ValueError: no such chip is known.
    """
    on_gpu = chip_named(chip).machine is GPU
    return simulate_gpu.settings(problem) if on_gpu else simulate_tpu.settings(problem)


def attempt(problem: Problem, target: str, pretend: Pretend) -> Verdict:
    """Run the program in the simulator of the chip's machine and compare its numbers.

    Raises:
      ValueError: the setting is unknown.
      Exception: what the program raises while it is traced.
    """
    on_gpu = chip_named(pretend.chip).machine is GPU
    simulated = simulate_gpu.attempt if on_gpu else simulate_tpu.attempt
    return simulated(problem, target, pretend)
