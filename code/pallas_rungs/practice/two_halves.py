"""Exercise: part measured kernels in two, to fit constants on one half and judge on the other."""

from __future__ import annotations

import hashlib
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Measured:
    """A kernel that was measured on a chip.

    Attributes:
      kernel: which of several kernels for the same task.
      arrays: the types of its arrays: `bf16[8192,4096] bf16[8,4096,1024]`.
      milliseconds: its measured time.
    """

    kernel: str
    arrays: str
    milliseconds: float


Part = Callable[[Sequence[Measured]], list[bool]]
"""Says of each kernel, in the order given, whether it is one to fit on."""


def starter(points: Sequence[Measured]) -> list[bool]:
    """Where to begin: every other one."""
    return [place % 2 == 0 for place in range(len(points))]


def solution(points: Sequence[Measured]) -> list[bool]:
    """A hash of the arrays decides: it knows no time, no kernel, and none of the other points."""
    return [hashlib.sha256(point.arrays.encode()).digest()[0] % 2 == 0 for point in points]


def by_hash_of_all(points: Sequence[Measured]) -> list[bool]:
    """Wrong: two kernels for the same arrays may come into different halves."""
    return [
        hashlib.sha256(f"{point.kernel} {point.arrays}".encode()).digest()[0] % 2 == 0
        for point in points
    ]


def short_ones(points: Sequence[Measured]) -> list[bool]:
    """Wrong: fits on what was measured to be short."""
    least: dict[str, float] = {}
    for point in points:
        least[point.arrays] = min(point.milliseconds, least.get(point.arrays, point.milliseconds))
    middle = statistics.median(least.values())
    return [least[point.arrays] < middle for point in points]


def every_other_shape(points: Sequence[Measured]) -> list[bool]:
    """Wrong: a shape that comes in changes the halves of those behind it."""
    order = sorted({point.arrays for point in points})
    return [order.index(point.arrays) % 2 == 0 for point in points]


def nearly_all(points: Sequence[Measured]) -> list[bool]:
    """Wrong: leaves hardly anything to judge on."""
    return [hashlib.sha256(point.arrays.encode()).digest()[0] >= 16 for point in points]


WRONG: tuple[tuple[Part, str], ...] = (
    (by_hash_of_all, "in both halves"),
    (short_ones, "before any time is looked at"),
    (every_other_shape, "a point that comes in later"),
    (nearly_all, "a third of the shapes"),
)


def _points(rng: random.Random) -> list[Measured]:
    """Make up 200 shapes, each measured with one, two or three kernels."""
    found = []
    for _ in range(200):
        rows, inner, columns = (2 ** rng.randint(7, 14) + 8 * rng.randint(0, 9) for _ in range(3))
        arrays = f"bf16[{rows},{inner}] bf16[{inner},{columns}]"
        found += [
            Measured(f"kernel {number}", arrays, rng.uniform(0.1, 50))
            for number in range(rng.randint(1, 3))
        ]
    rng.shuffle(found)
    return found


def check(part: Part) -> None:
    """Part 200 shapes five times, and see what a fair judge would ask of the halves.

    Args:
        part: called with a list of `Measured`; returns for each whether it is one to fit on.

    Raises:
        AssertionError: says what is unfair about the halves, with an example.
    """
    for seed in range(5):
        rng = random.Random(seed)
        points = _points(rng)
        halves = _halves(part, points)
        fit_on = {point.arrays for point, chosen in zip(points, halves, strict=True) if chosen}
        rest = {point.arrays for point, chosen in zip(points, halves, strict=True) if not chosen}
        if both := sorted(fit_on & rest):
            raise AssertionError(
                f"{both[0]} is in both halves.\nHint: what is fitted on one kernel of a shape has "
                "seen the shape; keep whatever has the same arrays together"
            )
        shapes = len(fit_on | rest)
        if min(len(fit_on), len(rest)) < shapes / 3:
            raise AssertionError(
                f"{len(fit_on)} of {shapes} shapes to fit on and {len(rest)} to judge.\nHint: give "
                "each half a third of the shapes or more"
            )
        times = [point.milliseconds for point in points]
        rng.shuffle(times)
        measured_otherwise = [
            replace(point, milliseconds=time) for point, time in zip(points, times, strict=True)
        ]
        if _halves(part, measured_otherwise) != halves:
            raise AssertionError(
                "other measured times, and the halves are others.\nHint: decide before any time is "
                "looked at"
            )
        if _halves(part, points[1:]) != halves[1:]:
            raise AssertionError(
                f"without {points[0].arrays} the halves of others change.\nHint: a point that "
                "comes in later must move none that is there"
            )


def _halves(part: Part, points: Sequence[Measured]) -> list[bool]:
    found = part(list(points))
    if not isinstance(found, list) or len(found) != len(points):
        raise AssertionError(f"return a list with True or False for each of {len(points)} points")
    return [bool(chosen) for chosen in found]
