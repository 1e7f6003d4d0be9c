"""Kernels as climbers: what each rung said, and how high each kernel gets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pallas_rungs.figures.glyphs import RUNGS, check_status, first_caught

type Rows = Mapping[str, Mapping[str, str]] | Iterable[tuple[str, Mapping[str, str]]]


@dataclass(frozen=True)
class Climber:
    """One kernel on the ladder.

    Attributes:
        name: what it is called.
        statuses: rung -> status.
        caught: the first rung that blames it, or None.
        healthy: whether it is known to be right.
    """

    name: str
    statuses: Mapping[str, str]
    caught: str | None
    healthy: bool

    @property
    def outcome(self) -> str:
        """What came of the climb, in a few words."""
        if self.caught is not None:
            return self.statuses[self.caught]
        return "passes every rung tried" if self.healthy else "caught by none"


def climbers(rows: Rows, healthy: Collection[str] = ()) -> tuple[Climber, ...]:
    """Read rows of (name, {rung: status}), in order of how high each kernel gets, highest first.

    Raises:
        ValueError: if there are no rows, a row is empty, a rung or status is unknown, or a name in
            `healthy` is not among the rows or is a kernel that was caught.
    """
    pairs = list(rows.items() if isinstance(rows, Mapping) else rows)
    if not pairs:
        raise ValueError("no rows: give (name, {rung: status}) for at least one kernel")
    if missing := set(healthy) - {name for name, _ in pairs}:
        raise ValueError(f"healthy names no row: {', '.join(sorted(missing))}")
    read = []
    for name, statuses in pairs:
        if not statuses:
            raise ValueError(f"{name!r} was tried on no rung")
        caught = first_caught(statuses)
        words = {str(r): check_status(s) for r, s in statuses.items()}
        if caught is not None and name in healthy:
            raise ValueError(f"{name!r} is called healthy, but {caught} says {words[caught]!r}")
        read.append(Climber(name, words, caught, name in healthy))

    def order(climber: Climber) -> tuple[int, bool]:
        return (
            -RUNGS.index(climber.caught) if climber.caught else -len(RUNGS),
            not climber.healthy,
        )

    return tuple(sorted(read, key=order))
