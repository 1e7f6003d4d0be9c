"""Rung 2: the generic interpreter proves the arithmetic against the reference."""

from __future__ import annotations

from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs.running import run_and_compare
from pallas_rungs.ladder.status import Rung
from pallas_rungs.ladder.verdict import Verdict


def attempt(problem: Problem, target: str, pretend: Pretend) -> Verdict:
    """Run the program with `interpret=True` and compare its numbers.

    Raises:
      Exception: what the program raises while it is traced.
    """
    return run_and_compare(problem, Rung.INTERPRET, target, True)
