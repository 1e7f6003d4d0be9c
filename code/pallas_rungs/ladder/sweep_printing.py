"""What the command `sweep` prints: text or JSON, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pallas_rungs.performance import Sweep

FAULT, UNAVAILABLE = 1, 3


def exit_code(found: Sequence[Sweep]) -> int:
    """Return 0 where each sweep has a best one, 3 where only a compiler was missing, else 1."""
    kinds = {trial.kind for sweep in found for trial in sweep.refused}
    missing = [sweep for sweep in found if not sweep.estimated]
    rivals = [sweep.against for sweep in found if sweep.against is not None]
    if not missing and all(rival.estimate is not None for rival in rivals):
        return 0
    return UNAVAILABLE if kinds == {"unavailable"} else FAULT


def as_json(found: Sequence[Sweep], code: int | None = None) -> str:
    """Return everything as JSON, with the exit code `code`, or that of the sweeps for None."""
    data = [sweep.to_json() for sweep in found]
    return json.dumps(
        {"sweeps": data, "exit_code": exit_code(found) if code is None else code}, indent=2
    )


def show(found: Sequence[Sweep]) -> None:
    """Print every sweep as a table."""
    print("\n\n".join(map(str, found)))
