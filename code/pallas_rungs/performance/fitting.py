"""Fits a chip's frequency and its share of HBM's rate on one half of the measured shapes.

The record holds, of each kernel, what it takes in cycles at several rates of HBM, so that another
choice of the two constants prices it without a compiler: a frequency scales all cycles, and HBM's
rate enters as the cycles that a byte takes. Between the recorded rates the cycles are interpolated.
A run is sums and maxima of times that grow with a byte's cycles, so its cycles are a line with
kinks of them, and interpolation errs only where a kink lies between two recorded rates.

The halves are halves of *shapes*: whatever was measured with the same arrays stays together, on
every chip, by whichever kernel, whatever it returns and however its rows are grouped. Which half is
decided by a hash of the arrays' types, before any time is looked at.
"""

from __future__ import annotations

import bisect
import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pallas_rungs.performance.clock import CLOCKS
from pallas_rungs.performance.validation import (
    Agreement,
    Compared,
    Comparison,
    of_estimates,
    priced,
)

FITTED: Final = "the fitted half"
HELD_OUT: Final = "the held-out half"

RATES: Final = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5)
"""For how many times the cycles that a byte takes now a point's cycles are recorded."""

_ARRAY: Final = re.compile(r"\w+\[[\d,]*\]")
LATENCIES: Final = (0.5e-6, 0.7e-6, 0.9e-6, 1.2e-6)
"""Seconds that a transfer may be under way for which a point's cycles are recorded as well."""

FITTED_LATENCIES: Final = tuple(step * 0.1e-6 for step in range(4, 12))
"""Those among which the best is looked for."""

_SPREAD: Final = 0.35
_ROUNDS: Final = 8
_FEW_ROUNDS: Final = 4
_STEPS: Final = 12
_SHRINK: Final = 4.0
_OVERHEADS: Final = 101  # of 0 to 1 µs for each program


class FitError(ValueError):
    """Points that no constants can be fitted on; the message says why."""


def task_of(shapes: str) -> str:
    """Return the arrays' types of a point's shapes, in their order: what decides its half."""
    return " ".join(_ARRAY.findall(shapes))


def half_of(shapes: str) -> str:
    """Return which half a point belongs to: `FITTED` or `HELD_OUT`."""
    first = hashlib.sha256(task_of(shapes).encode()).digest()[0]
    return FITTED if first % 2 == 0 else HELD_OUT


def halves(points: Iterable[Compared]) -> tuple[list[Compared], list[Compared]]:
    """Return the points to fit on and those held out, each in their order."""
    parts: dict[str, list[Compared]] = {FITTED: [], HELD_OUT: []}
    for point in points:
        parts[half_of(point.shapes)].append(point)
    return parts[FITTED], parts[HELD_OUT]


@dataclass(frozen=True)
class Constants:
    """The constants that are fitted.

    Attributes:
      frequency: cycles in a second.
      hbm_rate: bytes that HBM moves in a second.
      latency: seconds from the end of a transfer to its semaphore, for reads and writes alike; None
        for those in use.
    """

    frequency: float
    hbm_rate: float
    latency: float | None = None


@dataclass(frozen=True)
class Fit:
    """Constants fitted on points, and how sure they are.

    Attributes:
      constants: the fitted ones.
      points: how many points.
      tasks: how many different arrays they are of.
      rms_log_error: of those points, with the fitted constants.
      frequency_error: standard error of the frequency, as a part of it; NaN for fewer than 3 tasks.
      hbm_error: the same of HBM's rate.
      edge: what of the fit lies at the edge of what was searched: nothing, `frequency`, `HBM`.
    """

    constants: Constants
    points: int
    tasks: int
    rms_log_error: float
    frequency_error: float
    hbm_error: float
    edge: tuple[str, ...]


def milliseconds(point: Compared, constants: Constants) -> float:
    """Return what a point is estimated to take with other constants.

    Raises:
      FitError: the record has no cycles of the point.
    """
    byte = constants.frequency / constants.hbm_rate
    if not (point.cycles if constants.latency is None else point.late):
        raise FitError(f"{point.name}: its cycles were not recorded; estimate it anew")
    if constants.latency is None:
        cycles = _between(point.byte_cycles, point.cycles, byte)
    else:
        rows = [_between(point.byte_cycles, row, byte) for row in point.late]
        cycles = _between(point.latencies, rows, constants.latency * constants.frequency)
    return 1e3 * cycles / constants.frequency


def with_constants(points: Iterable[Compared], constants: Constants) -> list[Compared]:
    """Return points as they would be estimated with other constants."""
    return [priced(point, milliseconds(point, constants)) for point in points]


def fitted(points: Sequence[Compared], around: Constants, *, spread: float = _SPREAD) -> Fit:
    """Fit the two constants so that the rms log error of the points is least.

    Args:
      points: estimated and measured kernels of one chip, with their cycles.
      around: where to begin.
      spread: how far to look around it, as a logarithm.

    Returns:
      The fit. Its standard errors are a jackknife's, which leaves out one task at a time.

    Raises:
      FitError: there are fewer than 2 points, or one has no cycles.
    """
    if len(points) < 2:
        raise FitError(f"{len(points)} points: two constants need 2 or more")
    best = _least(points, around, spread)
    tasks: dict[str, list[Compared]] = {}
    for point in points:
        tasks.setdefault(task_of(point.shapes), []).append(point)
    without = [
        _least(left, best, spread / 2)
        for task in tasks
        if len(left := [point for point in points if task_of(point.shapes) != task]) >= 2
    ]
    edge = [
        name
        for name, one, other in (
            ("frequency", best.frequency, around.frequency),
            ("HBM", best.hbm_rate, around.hbm_rate),
        )
        if abs(math.log(one / other)) > 0.99 * spread
    ]
    return Fit(
        best,
        len(points),
        len(tasks),
        of_estimates(with_constants(points, best)).rms_log_error,
        _jackknife([one.frequency for one in without], len(tasks)),
        _jackknife([one.hbm_rate for one in without], len(tasks)),
        tuple(edge),
    )


def fitted_with_latency(points: Sequence[Compared], around: Constants) -> Constants:
    """Fit the latency of transfers besides the two constants, so that the error is least.

    Args:
      points: as of `fitted`, with their cycles at several latencies.
      around: where to begin.

    Raises:
      FitError: there are fewer than 3 points, or one has no such cycles.
    """
    if len(points) < 3:
        raise FitError(f"{len(points)} points: three constants need 3 or more")
    found = [
        _least(points, replace(around, latency=latency), _SPREAD, rounds=_FEW_ROUNDS)
        for latency in FITTED_LATENCIES
    ]
    return min(found, key=lambda it: _squares(points, it))


def fitted_overhead(points: Sequence[Compared]) -> float:
    """Return the milliseconds that, added for each program that a run executes, fit points best.

    Raises:
      FitError: there is no point, or one whose programs were not counted.
    """
    if not points or not all(point.programs for point in points):
        raise FitError("an overhead needs points whose programs were counted; estimate them anew")
    steps = [1e-5 * step for step in range(_OVERHEADS)]
    return min(steps, key=lambda step: of_estimates(with_overhead(points, step)).rms_log_error)


def with_overhead(points: Iterable[Compared], milliseconds: float) -> list[Compared]:
    """Return points with so many milliseconds more for each program that they execute."""
    return [
        priced(point, point.ratio * point.measured_ms + milliseconds * point.programs)
        for point in points
    ]


def _jackknife(values: list[float], tasks: int) -> float:
    """Return a standard error as a part of the mean, from the fits without one task each."""
    if tasks < 3 or len(values) < tasks:
        return math.nan
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    return math.sqrt(squares * (len(values) - 1) / len(values)) / mean


def _least(
    points: Sequence[Compared], around: Constants, spread: float, *, rounds: int = _ROUNDS
) -> Constants:
    """Search a square around some constants, and ever smaller ones around the best of it."""
    low = math.log(around.frequency) - spread, math.log(around.hbm_rate) - spread
    high = math.log(around.frequency) + spread, math.log(around.hbm_rate) + spread
    centre, width = (math.log(around.frequency), math.log(around.hbm_rate)), spread
    for _ in range(rounds):
        steps = [width * (2 * step / _STEPS - 1) for step in range(_STEPS + 1)]
        candidates = [
            (
                min(max(centre[0] + one, low[0]), high[0]),
                min(max(centre[1] + other, low[1]), high[1]),
            )
            for one in steps
            for other in steps
        ]
        centre = min(candidates, key=lambda at: _squares(points, _constants(at, around.latency)))
        width /= _SHRINK
    return _constants(centre, around.latency)


def _constants(logarithms: tuple[float, float], latency: float | None) -> Constants:
    return Constants(math.exp(logarithms[0]), math.exp(logarithms[1]), latency)


def _squares(points: Sequence[Compared], constants: Constants) -> float:
    return sum(math.log(milliseconds(p, constants) / p.measured_ms) ** 2 for p in points)


def _between(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Interpolate on a line with kinks; beyond its ends the outer pieces go on."""
    place = min(max(bisect.bisect_left(xs, x), 1), len(xs) - 1)
    slope = (ys[place] - ys[place - 1]) / (xs[place] - xs[place - 1])
    return ys[place - 1] + slope * (x - xs[place - 1])


@dataclass(frozen=True)
class ChipFit:
    """A chip's constants, fitted on half of its kernels' shapes, and the errors of both halves.

    Attributes:
      chip: the chip's name.
      fit: on the fitted half.
      in_use: the constants of `clock.CLOCKS`.
      errors: of each half, with the fitted constants and with those in use, by (half, "fitted" or
        "in use"); a half without a point is not in it.
    """

    chip: str
    fit: Fit
    in_use: Constants
    errors: dict[tuple[str, str], Agreement]

    def __str__(self) -> str:
        fit = self.fit
        words = [
            f"{self.chip}: fitted on {fit.points} kernels of {fit.tasks} shapes: "
            f"{fit.constants.frequency / 1e9:.3f} GHz ± {fit.frequency_error:.1%} "
            f"(in use {self.in_use.frequency / 1e9:g}), "
            f"HBM {fit.constants.hbm_rate / 1e9:.0f} GB/s ± {fit.hbm_error:.1%} "
            f"(in use {self.in_use.hbm_rate / 1e9:.0f})"
        ]
        words += [
            f"rms log error of {half}, constants {which}: {found.rms_log_error:.3f} "
            f"({found.points} kernels)"
            for (half, which), found in self.errors.items()
        ]
        words += [f"at the edge of the search: {', '.join(fit.edge)}"] if fit.edge else []
        return "\n  ".join(words)


def to_fit_on(record: Comparison, chip: str) -> list[Compared]:
    """Return a chip's Pallas kernels whose configuration is stored and cycles are recorded."""
    return [
        point
        for point in record.estimated
        if point.chip == chip and point.pallas and point.stored and point.cycles
    ]


def in_use(chip: str) -> Constants:
    """Return the constants that estimates are made with."""
    return Constants(CLOCKS[chip].frequency.value, CLOCKS[chip].hbm_rate.value)


def fits(record: Comparison) -> tuple[ChipFit, ...]:
    """Fit each chip's constants on one half of the record's shapes, and judge them on both.

    They are fitted on what `to_fit_on` returns. A chip with fewer than 2 kernels in the fitted half
    is left out.
    """
    found = []
    for chip in CLOCKS:
        fit_on, held_out = halves(to_fit_on(record, chip))
        if len(fit_on) < 2:
            continue
        now = in_use(chip)
        fit = fitted(fit_on, now)
        errors = {
            (half, which): of_estimates(with_constants(part, constants))
            for half, part in ((FITTED, fit_on), (HELD_OUT, held_out))
            for which, constants in (("fitted", fit.constants), ("in use", now))
            if part
        }
        found.append(ChipFit(chip, fit, now, errors))
    return tuple(found)
