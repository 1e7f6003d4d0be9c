"""The ladder: try a Pallas kernel on every rung that needs no chip.

`climb` tries a program on the rungs and returns a `Report`; every rung's answer is a `Verdict`.
Names are loaded on first use, so importing this package does not import jax.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Difference, Frame, KernelError, Verdict

if TYPE_CHECKING:
    from pallas_rungs.ladder.climbing import climb
    from pallas_rungs.ladder.problem import Problem
    from pallas_rungs.ladder.report import Report

__all__ = [
    "Difference",
    "Frame",
    "KernelError",
    "Problem",
    "Report",
    "Rung",
    "Status",
    "Verdict",
    "climb",
]

_LAZY = {
    "Problem": "pallas_rungs.ladder.problem",
    "Report": "pallas_rungs.ladder.report",
    "climb": "pallas_rungs.ladder.climbing",
}


def __getattr__(name: str) -> Any:
    """Load `climb`, `Report` and `Problem` when they are first asked for."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
