"""Climb every case of a folder in this one process, printing a JSON line for each verdict.

    python -m ladder.cases.climb_cases FOLDER [NAME ...]

A line holds `case`, `variant` and `verdict`, as `Verdict.to_json` gives it. The last line holds
`"all": true`, so that a process which died is told from one which came to its end. The disk cache
is not used.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
GPUS = ("h100", "b200", "a100")

FOR_GPU = ("64", "65", "67", "69", "70")
"""Cases that were measured for a GPU; some are legal TPU kernels as well."""

ENDLESS = {"70_triton_grid_yz": ("interpret",)}
"""Rungs left out: that many grid steps take an interpreter minutes."""


def load(path: Path) -> ModuleType:
    """Execute a case, with the module that its harness lends it."""
    spec = importlib.util.spec_from_file_location(f"case_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module)["os"] = os
    spec.loader.exec_module(module)
    return module


def rungs_and_targets(
    problem: Any, lowered_for: str, compiled_for: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield what a problem is to be tried on."""
    from pallas_rungs.ladder.rungs import simulator_settings

    yield "trace", ""
    yield "interpret", ""
    for setting in simulator_settings(problem, lowered_for):
        yield "simulate", setting
    yield "lower", lowered_for
    for chip in compiled_for:
        yield "compile", chip


def climb_cases(folder: Path, names: list[str]) -> None:
    """Climb the cases of these names, or of every name, and print the verdicts as they come."""
    from pallas_rungs.ladder.protocol import problem_from_module
    from pallas_rungs.ladder.rungs import attempt

    expected = json.loads((folder / "expected.json").read_text())
    for name in names or expected:
        module = load(folder / f"{name}.py")
        more_chips = tuple(getattr(module, "MORE_TARGETS", ()))
        on_gpu = name[:2] in FOR_GPU
        chip, chips = ("h100", GPUS) if on_gpu else ("v5e", (*CHIPS, *more_chips))
        for variant in expected[name]:
            (problem,) = problem_from_module(module, variant)
            for rung, target in rungs_and_targets(problem, chip, chips):
                if rung in ENDLESS.get(name, ()):
                    continue
                told = {"case": name, "variant": variant}
                told["verdict"] = attempt(problem, rung, target, chip=chip).to_json()
                print(json.dumps(told), flush=True)
    print(json.dumps({"all": True}), flush=True)


if __name__ == "__main__":
    climb_cases(Path(sys.argv[1]), sys.argv[2:])
