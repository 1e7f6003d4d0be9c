"""The closed sets of names that every verdict is made of: rungs and statuses."""

from __future__ import annotations

from enum import StrEnum


class Rung(StrEnum):
    """One rung of the ladder, from the cheapest proof to the dearest."""

    TRACE = "trace"
    INTERPRET = "interpret"
    SIMULATE = "simulate"
    LOWER = "lower"
    COMPILE = "compile"
    CHIP = "chip"

    @property
    def number(self) -> int:
        """1 for trace, 6 for chip."""
        return list(Rung).index(self) + 1


class Status(StrEnum):
    """What a rung said about a program. The set is closed."""

    PASSED = "passed"
    """It ran (or compiled) and, where numbers were compared, they agree."""
    UNCHECKED = "unchecked"
    """It ran, but there was no reference to compare the numbers with."""
    WRONG = "wrong"
    """The numbers differ from the reference."""
    REFUSED = "refused"
    """An error that is the program's own."""
    NO_KERNEL = "no kernel"
    """No Pallas kernel was left in the program: nothing was there to judge."""
    TOOL_CANNOT = "tool cannot"
    """A known gap of this rung's tool; the kernel is not to blame."""
    DEADLOCKED = "deadlocked"
    """The time limit passed while the process stood idle."""
    TIMED_OUT = "timed out"
    """The time limit passed while the process was still busy."""
    CRASHED = "crashed"
    """The process died."""
    UNAVAILABLE = "unavailable"
    """The tool of this rung is not installed here."""
    REFERENCE_FAILED = "reference failed"
    """The reference itself raised, so there was nothing to compare with."""

    @property
    def blames_kernel(self) -> bool:
        """True when the status says that the program itself is at fault."""
        return self in _BLAMES_KERNEL


_BLAMES_KERNEL = frozenset(
    {Status.WRONG, Status.REFUSED, Status.DEADLOCKED, Status.TIMED_OUT, Status.CRASHED}
)

EVERY_RUNG_HERE: tuple[Rung, ...] = (
    Rung.TRACE,
    Rung.INTERPRET,
    Rung.SIMULATE,
    Rung.LOWER,
    Rung.COMPILE,
)
"""The rungs that need no chip, in order."""
