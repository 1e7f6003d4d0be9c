"""From the operation that an error names to the line of the kernel that asked for it."""

from __future__ import annotations

import re
from typing import Any

from pallas_rungs.ladder import swap
from pallas_rungs.ladder.source_frames import line_of
from pallas_rungs.ladder.verdict import Frame

_NAMED = re.compile(
    r"Unimplemented primitive in Pallas [\w ]+ lowering(?: for \w+)?: (\w+)"
    r"|translation rule for primitive '(\w+)'"
)


def line_asking_for(message: str, kernels: list[Any]) -> Frame | None:
    """Return the user's line behind the operation that `message` names.

    Operations of jax's own functions are traced once and then reused without the line that called
    them; that of the call stands in.

    Args:
      message: what a lowering said about an operation that it lacks.
      kernels: the equations that launch a kernel.
    """
    match = _NAMED.search(message)
    if match is None:
        return None
    name = match[1] or match[2]
    return next(
        (
            frame
            for kernel in kernels
            for body in swap.sub_jaxprs(kernel.params)
            if (frame := _line_of(body, name)) is not None
        ),
        None,
    )


def _line_of(jaxpr: Any, name: str) -> Frame | None:
    """Return the innermost user's line of the first equation of that name, at any depth."""
    for eqn in jaxpr.eqns:
        inner = [i for i in swap.sub_jaxprs(eqn.params) if _uses(i, name)]
        for body in inner:
            if frame := _line_of(body, name):
                return frame
        if (inner or eqn.primitive.name == name) and (frame := line_of(eqn.source_info)):
            return frame
    return None


def _uses(jaxpr: Any, name: str) -> bool:
    return any(eqn.primitive.name == name for eqn in swap.equations(jaxpr))
