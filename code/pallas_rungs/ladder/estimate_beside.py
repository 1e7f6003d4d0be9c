"""The estimate beside rung 5: of a program that compiled, what it would take on that chip.

It never changes a verdict. Where there is none, the verdict's details say why.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pallas_rungs.ladder.status import Status
from pallas_rungs.ladder.verdict import Verdict

if TYPE_CHECKING:
    from pallas_rungs.compilers.dumps import Dumps
    from pallas_rungs.ladder.program import Program
    from pallas_rungs.performance.estimate import Estimate

KEPT = (
    "seconds",
    "low",
    "high",
    "error",
    "cycles",
    "unresolved",
    "prefetched_bytes",
    "method",
    "versions",
)
"""What a verdict's details keep of an estimate."""


@dataclass(frozen=True)
class Compiled:
    """A program that compiled for a TPU.

    Attributes:
      program: the traced program.
      chip: the chip's name.
      devices: how many devices it spans.
      dumps: what its compiler wrote.
    """

    program: Program
    chip: str
    devices: int
    dumps: Dumps


OnCompiled = Callable[[Compiled], None]


def estimate_compiled(compiled: Compiled, name: str) -> dict[str, Any]:
    """Estimate a program from what its compiler wrote.

    Args:
      compiled: the program.
      name: what it is called.

    Returns:
      Plain JSON data: `chip`, what `KEPT` names, and `text`, one clause; or `none`, why there is
      no estimate.
    """
    from pallas_rungs.ladder import swap
    from pallas_rungs.performance.estimate import Program as Prepared
    from pallas_rungs.performance.estimate import estimate_of
    from pallas_rungs.performance.operands import known_operands

    if compiled.devices > 1:
        return {"none": f"the program spans {compiled.devices} devices; an estimate is of one"}
    program = compiled.program
    try:
        closed = swap.without_debug_prints(swap.with_interpreter(program.jaxpr, False))
        operands = known_operands(closed, program.arrays)
        prepared = Prepared(name, (), compiled.chip, b"", operands)
        found = with_the_eager_named(estimate_of(prepared, compiled.dumps), program).to_json()
    except Exception as error:
        return {"none": f"{type(error).__name__}: {error}"}
    return {
        "chip": compiled.chip,
        "text": in_words(found),
        **{field: found[field] for field in KEPT},
    }


def with_the_eager_named(found: Estimate, program: Program) -> Estimate:
    """Return the estimate, with what it leaves out of a program that runs eagerly only.

    Args:
      found: the estimate of what was compiled.
      program: what was traced; where it looks at values, only the kernels that it launched.
    """
    if not program.eager:
        return found
    left_out = (
        "the program looks at values while it is traced: only its Pallas kernels are estimated "
        "(integers that decide where they go are taken as zeros), not what it computes beside them"
    )
    return dataclasses.replace(found, unresolved=(left_out, *found.unresolved))


def in_words(found: Mapping[str, Any]) -> str:
    """Say an estimate in one clause: `estimate 750 µs (740 to 760 µs), not a measurement`."""
    from pallas_rungs.performance.report import in_bytes, in_time

    text = f"estimate {in_time(found['seconds'])}"
    fetched = found.get("prefetched_bytes")
    end = ", not a measurement"
    if fetched:
        end += f", without {in_bytes(fetched)} that are fetched onto the chip before it starts"
    if found["low"] is None or found["high"] is None:
        return f"{text} (error not known){end}"
    low, high = in_time(found["low"]), in_time(found["high"])
    number, _, unit = low.partition(" ")
    if high.endswith(f" {unit}"):
        low = number
    guessed = ", partly guessed" if found["unresolved"] else ""
    return f"{text} ({low} to {high}{guessed}){end}"


def with_estimate(verdict: Verdict, found: Mapping[str, Any]) -> Verdict:
    """Return a passed verdict with an estimate, or the reason for its absence, in its details."""
    if verdict.status is not Status.PASSED:
        return verdict
    return dataclasses.replace(verdict, details={**verdict.details, "estimate": dict(found)})
