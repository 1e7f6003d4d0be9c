"""Exercise: find the data races of a run from the vector clocks of its accesses."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Access(NamedTuple):
    """One read or write of rows of a buffer.

    Attributes:
        clock: of the thread that did it, just after: one count for each thread.
        rows: (first, one past the last).
        writes: false for a read.
    """

    clock: tuple[int, ...]
    rows: tuple[int, int]
    writes: bool


Finds = Callable[[Sequence[Access]], list[tuple[int, int]]]


def starter(accesses: Sequence[Access]) -> list[tuple[int, int]]:
    """Call every pair with a write a race."""
    return [
        (i, j)
        for j in range(len(accesses))
        for i in range(j)
        if accesses[i].writes or accesses[j].writes
    ]


def solution(accesses: Sequence[Access]) -> list[tuple[int, int]]:
    """Pairs that overlap, with a write, of which neither happened before the other."""

    def before(a: Access, b: Access) -> bool:
        return a.clock != b.clock and all(x <= y for x, y in zip(a.clock, b.clock, strict=True))

    def overlap(a: Access, b: Access) -> bool:
        return a.rows[0] < b.rows[1] and b.rows[0] < a.rows[1]

    return [
        (i, j)
        for i, j in starter(accesses)
        if overlap(accesses[i], accesses[j])
        and not before(accesses[i], accesses[j])
        and not before(accesses[j], accesses[i])
    ]


def anywhere(accesses: Sequence[Access]) -> list[tuple[int, int]]:
    """Wrong: accesses to different rows race as well."""
    return solution([Access(clock, (0, 1), writes) for clock, _, writes in accesses])


def by_the_order_of_the_run(accesses: Sequence[Access]) -> list[tuple[int, int]]:
    """Wrong: a pair is sound only if the one that ran first is before the other."""

    def before(a: Access, b: Access) -> bool:
        return all(x <= y for x, y in zip(a.clock, b.clock, strict=True))

    return [(i, j) for i, j in anywhere_or_not(accesses) if not before(accesses[i], accesses[j])]


def anywhere_or_not(accesses: Sequence[Access]) -> list[tuple[int, int]]:
    """Return pairs that overlap and have a write, whatever their clocks."""
    return [
        (i, j)
        for i, j in starter(accesses)
        if accesses[i].rows[0] < accesses[j].rows[1] and accesses[j].rows[0] < accesses[i].rows[1]
    ]


def by_the_sum_of_the_clock(accesses: Sequence[Access]) -> list[tuple[int, int]]:
    """Wrong: whoever has counted more is called later."""
    return [
        (i, j)
        for i, j in anywhere_or_not(accesses)
        if sum(accesses[i].clock) == sum(accesses[j].clock)
    ]


WRONG: tuple[tuple[Finds, str], ...] = (
    (anywhere, "no row in common"),
    (by_the_order_of_the_run, "either of the two may be the earlier"),
    (by_the_sum_of_the_clock, "every place of the one clock"),
)

_CASES: tuple[tuple[str, tuple[Access, ...], list[tuple[int, int]]], ...] = (
    (
        "A wait orders the write of a copy before the read: every place of the write's clock is at "
        "most the read's.",
        (Access((1, 3), (0, 8), True), Access((5, 4), (0, 8), False)),
        [],
    ),
    (
        "Compare every place of the one clock with the same of the other: two clocks of which "
        "each is ahead somewhere are not ordered.",
        (Access((2, 0), (0, 8), False), Access((1, 3), (0, 8), True)),
        [(0, 1)],
    ),
    (
        "Two accesses with no row in common do not race.",
        (Access((2, 0), (0, 8), False), Access((1, 3), (8, 16), True)),
        [],
    ),
    (
        "A simulator may run a copy late: either of the two may be the earlier, by its clock.",
        (Access((4, 4), (0, 8), True), Access((1, 3), (0, 8), True)),
        [],
    ),
    (
        "Two reads never race.",
        (
            Access((2, 0), (0, 8), False),
            Access((1, 1), (0, 8), False),
            Access((1, 3), (4, 12), True),
        ),
        [(0, 2)],
    ),
)


def check(find_races: Finds) -> None:
    """Try the reader's function on five short runs.

    Args:
        find_races: takes accesses to one buffer, in the order of the run, and returns the pairs
            (i, j), i < j, that race, in any order.

    Raises:
        AssertionError: a pair is missing or too many; says which, and what to look at.
    """
    for hint, accesses, want in _CASES:
        got = sorted(find_races(accesses))
        if got != want:
            told = ", ".join(
                f"{'write' if a.writes else 'read'} of rows {a.rows[0]} to {a.rows[1] - 1} at "
                f"{list(a.clock)}"
                for a in accesses
            )
            raise AssertionError(f"Of [{told}], {got} were called races, not {want}. {hint}")
