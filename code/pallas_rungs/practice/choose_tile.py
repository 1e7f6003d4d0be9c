"""Exercise: choose a tile from a sweep whose estimates have errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of a sweep.

    Attributes:
        tile: (bm, bk, bn).
        seconds: the estimate; None where the compiler refused the tile.
        low: the lower end of its range; None where the chip's error is not known.
        high: the upper end.
        vmem: bytes of VMEM that it takes; 0 where it was refused.
    """

    tile: tuple[int, int, int]
    seconds: float | None
    low: float | None
    high: float | None
    vmem: int


Choose = Callable[[Sequence[Row]], tuple[int, int, int]]


def starter(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Where to begin: the shortest estimate, whatever it takes."""
    estimated = [row for row in rows if row.seconds is not None]
    return min(estimated, key=lambda row: row.seconds or 0.0).tile


def solution(rows: Sequence[Row]) -> tuple[int, int, int]:
    """The least VMEM among those that the ranges do not tell apart from the best."""
    estimated = [row for row in rows if row.seconds is not None]
    best = min(estimated, key=lambda row: row.seconds or 0.0)

    def near(row: Row) -> bool:
        if row is best or row.low is None or best.high is None:
            return True
        return row.low <= best.high

    return min(filter(near, estimated), key=lambda row: row.vmem).tile


def least_vmem(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Wrong: the least VMEM of all, however slow."""
    return min((row for row in rows if row.seconds is not None), key=lambda row: row.vmem).tile


def refused_as_well(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Wrong: a tile that was refused takes no VMEM, and wins."""
    return min(rows, key=lambda row: row.vmem).tile


def by_the_middle(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Wrong: compares the estimate, not its range, with the range of the best."""
    estimated = [row for row in rows if row.seconds is not None]
    best = min(estimated, key=lambda row: row.seconds or 0.0)
    high = float("inf") if best.high is None else best.high
    near = [row for row in estimated if (row.seconds or 0.0) <= high]
    return min(near, key=lambda row: row.vmem).tile


WRONG: tuple[tuple[Choose, str], ...] = (
    (least_vmem, "are apart"),
    (refused_as_well, "was refused"),
    (by_the_middle, "reaches down into"),
)


def check(choose: Choose) -> None:
    """Ask for the tile to take from three small sweeps.

    Args:
        choose: called with the rows of a sweep; returns the tile that takes least VMEM among those
            whose range meets the range of the shortest estimate. Where no error is known, no two
            tiles are told apart.

    Raises:
        AssertionError: another tile was chosen; holds what speaks against it, and a hint.
    """
    mib = 2**20
    slow = Row((256, 512, 256), 2.0e-3, 1.8e-3, 2.2e-3, 2 * mib)
    near = Row((512, 512, 1024), 1.15e-3, 1.02e-3, 1.28e-3, 8 * mib)
    good = Row((1024, 512, 1024), 1.02e-3, 0.93e-3, 1.12e-3, 13 * mib)
    best = Row((1024, 4096, 512), 1.0e-3, 0.91e-3, 1.1e-3, 35 * mib)
    over = Row((2048, 4096, 2048), None, None, None, 0)
    unknown = [Row(row.tile, row.seconds, None, None, row.vmem) for row in (best, good, slow, over)]
    for rows, wanted in (
        ((best, good, slow, over), good),
        ((slow, over, near, good, best), near),
        (unknown, slow),
    ):
        chosen = tuple(choose(rows))
        if chosen == wanted.tile:
            continue
        row = next((row for row in rows if row.tile == chosen), None)
        raise AssertionError(
            f"of {[row.tile for row in rows]} {chosen} was chosen: {_why(row, wanted)}"
        )


def _why(row: Row | None, wanted: Row) -> str:
    if row is None:
        return "it is none of them"
    if row.seconds is None:
        return "it was refused, and has neither a time nor VMEM\nHint: leave such rows out first"
    if row.vmem > wanted.vmem:
        text = (
            f"{wanted.tile} takes {wanted.vmem / row.vmem:.0%} of its VMEM, and the estimates do "
            "not tell the two apart"
        )
        if wanted.low is not None and (wanted.seconds or 0.0) > 1.1 * (row.seconds or 0.0):
            text += (
                "\nHint: its range reaches down into the best one's: compare ranges, not middles"
            )
        elif wanted.low is None:
            text += "\nHint: where no error is known, no estimate is beyond the range of another"
        return text
    return "its range and the best one's are apart\nHint: first keep what is not told apart from it"
