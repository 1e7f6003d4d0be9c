"""Fits a chip's constants on one half of the measured shapes, and judges them on the other.

Two constants of each chip are fitted, its frequency and its share of HBM's rate, and on chips whose
latency of transfers is fitted that is a third. The record holds, of each kernel, what it takes in
cycles at several rates of HBM and at several latencies, so that another choice of constants prices
it without a compiler: a frequency scales all cycles, HBM's rate enters as the cycles that a byte
takes, and a latency as cycles too. Between what is recorded the cycles are interpolated. A run is
sums and maxima of times that grow with a byte's cycles and with the latency, so its cycles are a
line with kinks in either, and interpolation errs only where a kink lies in between.

The halves are halves of *shapes*: whatever was measured with the same arrays stays together, on
every chip, by whichever kernel, whatever it returns and however its rows are grouped. Which half is
decided by a hash of the arrays' types, before any time is looked at.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

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

LATENCIES: Final = (0.3e-6, 0.5e-6, 0.7e-6, 0.9e-6, 1.2e-6)
"""Seconds that a transfer may be under way for which a point's cycles are recorded as well."""

FITTED_LATENCIES: Final = tuple(step * 0.1e-6 for step in range(3, 13))
"""Those among which the best is looked for."""

FEWEST: Final = 3
"""Points without which constants are not fitted on a half."""

_ARRAY: Final = re.compile(r"\w+\[[\d,]*\]")
_SPREAD: Final = 0.35
_ROUNDS: Final = 6
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
      latency_error: the same of the latency; NaN where none was fitted.
      edge: what of the fit lies at the edge of what was searched: `frequency`, `HBM`, `latency`.
    """

    constants: Constants
    points: int
    tasks: int
    rms_log_error: float
    frequency_error: float
    hbm_error: float
    latency_error: float
    edge: tuple[str, ...]


class _Priced:
    """The recorded cycles of some points, to be priced with any constants at once."""

    def __init__(self, points: Sequence[Compared]) -> None:
        """Take points of one chip that were recorded alike.

        Raises:
          FitError: a point has no cycles, or they were recorded at other rates than the first's.
        """
        self.points = points
        self.measured = np.array([point.measured_ms for point in points])
        for point in points:
            if not (point.cycles and point.late):
                raise FitError(f"{point.name}: its cycles were not recorded; estimate it anew")
            if (point.byte_cycles, point.latencies) != (
                points[0].byte_cycles,
                points[0].latencies,
            ):
                raise FitError(
                    f"{point.name}: its cycles were recorded at other rates than those of "
                    f"{points[0].name}; estimate both anew"
                )
        self._bytes, self._latencies = points[0].byte_cycles, points[0].latencies
        self._cycles = np.array([point.cycles for point in points]).T  # rates, points
        self._late = np.array([point.late for point in points]).transpose(1, 2, 0)

    def milliseconds(self, candidates: Sequence[Constants]) -> npt.NDArray[np.float64]:
        """Return what is estimated with each candidate (rows) for each point (columns)."""
        frequency = np.array([one.frequency for one in candidates])
        byte = _place(self._bytes, frequency / np.array([one.hbm_rate for one in candidates]))
        if candidates[0].latency is None:
            cycles = _between(byte, lambda at: self._cycles[at])
        else:
            seconds = np.array([one.latency for one in candidates])
            late = _place(self._latencies, seconds * frequency)
            cycles = _between(late, lambda row: _between(byte, lambda at: self._late[row, at]))
        milliseconds: npt.NDArray[np.float64] = 1e3 * cycles / frequency[:, None]
        return milliseconds

    def squares(self, candidates: Sequence[Constants]) -> npt.NDArray[np.float64]:
        """Return for each candidate the sum of the squared logarithms of estimate / measurement."""
        off = np.log(self.milliseconds(candidates) / self.measured)
        squares: npt.NDArray[np.float64] = np.sum(off**2, axis=1)
        return squares

    def best(self, candidates: Sequence[Constants]) -> Constants:
        """Return the candidate with the least squares: all with a latency, or none."""
        return candidates[int(np.argmin(self.squares(candidates)))]


def with_constants(points: Sequence[Compared], constants: Constants) -> list[Compared]:
    """Return points as they would be estimated with other constants.

    Raises:
      FitError: the record has no cycles of a point.
    """
    if not points:
        return []
    (times,) = _Priced(points).milliseconds([constants])
    return [priced(point, float(time)) for point, time in zip(points, times, strict=True)]


def fitted(
    points: Sequence[Compared],
    around: Constants,
    *,
    latencies: Sequence[float] = (),
    spread: float = _SPREAD,
    errors: bool = True,
) -> Fit:
    """Fit constants so that the rms log error of the points is least.

    Args:
      points: estimated and measured kernels of one chip, with their cycles.
      around: where to begin. Where it has a latency, one is fitted too.
      latencies: those to choose from, in seconds; `FITTED_LATENCIES` where none is given.
      spread: how far to look around the frequency and HBM's rate, as a logarithm.
      errors: whether to find the standard errors; without, they are NaN.

    Returns:
      The fit. Its standard errors are a jackknife's, which leaves out one task at a time.

    Raises:
      FitError: there are fewer points than constants, or one has no cycles.
    """
    among: Sequence[float | None] = [None]
    if around.latency is not None:
        among = latencies or FITTED_LATENCIES
    wanted = 2 + (len(among) > 1)
    if len(points) < wanted:
        raise FitError(f"{len(points)} points: {wanted} constants need {wanted} or more")
    best = _least(points, around, among, spread)
    tasks: dict[str, list[Compared]] = {}
    for point in points:
        tasks.setdefault(task_of(point.shapes), []).append(point)
    without = [
        _least(left, best, among, spread / 2)
        for task in (tasks if errors else ())
        if len(left := [point for point in points if task_of(point.shapes) != task]) >= wanted
    ]
    edge = [
        name
        for name, one, other in (
            ("frequency", best.frequency, around.frequency),
            ("HBM", best.hbm_rate, around.hbm_rate),
        )
        if abs(math.log(one / other)) > 0.99 * spread
    ]
    edge += ["latency"] if len(among) > 1 and best.latency in (among[0], among[-1]) else []
    return Fit(
        best,
        len(points),
        len(tasks),
        of_estimates(with_constants(points, best)).rms_log_error,
        _jackknife([one.frequency for one in without], len(tasks)),
        _jackknife([one.hbm_rate for one in without], len(tasks)),
        _jackknife([one.latency for one in without if one.latency is not None], len(tasks)),
        tuple(edge),
    )


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
    points: Sequence[Compared],
    around: Constants,
    latencies: Sequence[float | None],
    spread: float,
) -> Constants:
    """Search a square around some constants, and ever smaller ones around the best of it."""
    recorded = _Priced(points)
    return recorded.best(
        [_in_square(recorded, replace(around, latency=each), spread) for each in latencies]
    )


def _in_square(recorded: _Priced, around: Constants, spread: float) -> Constants:
    """Search with one latency."""
    middle = math.log(around.frequency), math.log(around.hbm_rate)
    best, width = around, spread
    for _ in range(_ROUNDS):
        steps = [width * (2 * step / _STEPS - 1) for step in range(_STEPS + 1)]
        axes = [
            [
                math.exp(min(max(math.log(centre) + step, start - spread), start + spread))
                for step in steps
            ]
            for centre, start in zip((best.frequency, best.hbm_rate), middle, strict=True)
        ]
        best = recorded.best(
            [Constants(one, other, around.latency) for one, other in itertools.product(*axes)]
        )
        width /= _SHRINK
    return best


type _Place = tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]


def _place(xs: Sequence[float], x: npt.NDArray[np.float64]) -> _Place:
    """Return after which recorded value each one lies, and how far towards the next."""
    after = np.clip(np.searchsorted(xs, x), 1, len(xs) - 1) - 1
    recorded = np.array(xs)
    return after, (x - recorded[after]) / (recorded[after + 1] - recorded[after])


def _between(
    place: _Place, recorded: Callable[[npt.NDArray[np.intp]], npt.NDArray[np.float64]]
) -> npt.NDArray[np.float64]:
    """Interpolate on a line with kinks; beyond its ends the outer pieces go on."""
    after, part = place
    low = recorded(after)
    return low + part[:, None] * (recorded(after + 1) - low)


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
        fit, now = self.fit, self.in_use
        latency = ""
        if fit.constants.latency is not None and now.latency is not None:
            latency = (
                f", latency {fit.constants.latency * 1e6:.1f} µs ± {fit.latency_error:.0%} "
                f"(in use {now.latency * 1e6:.2f})"
            )
        words = [
            f"{self.chip}: fitted on {fit.points} kernels of {fit.tasks} shapes: "
            f"{fit.constants.frequency / 1e9:.3f} GHz ± {fit.frequency_error:.1%} "
            f"(in use {now.frequency / 1e9:g}), "
            f"HBM {fit.constants.hbm_rate / 1e9:.0f} GB/s ± {fit.hbm_error:.1%} "
            f"(in use {now.hbm_rate / 1e9:.0f}){latency}"
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
    """Return the constants that estimates are made with; a latency where it is a fitted one."""
    clock = CLOCKS[chip]
    frequency, latency = clock.frequency.value, clock.read_latency
    return Constants(
        frequency, clock.hbm_rate.value, latency.value / frequency if latency.fitted else None
    )


def fits(record: Comparison) -> tuple[ChipFit, ...]:
    """Fit each chip's constants on one half of the record's shapes, and judge them on both.

    They are fitted on what `to_fit_on` returns. A chip with fewer than `FEWEST` kernels in the
    fitted half is left out.
    """
    found = []
    for chip in CLOCKS:
        fit_on, held_out = halves(to_fit_on(record, chip))
        if len(fit_on) < FEWEST:
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


def crossed(
    points: Sequence[Compared], around: Constants, *, latencies: Sequence[float] = ()
) -> list[Compared]:
    """Return points, each as it would be estimated with constants that have not seen it.

    Args:
      points: as of `fitted`.
      around: as of `fitted`.
      latencies: as of `fitted`.

    Returns:
      Both halves, each priced with constants fitted on the other.

    Raises:
      FitError: a half has fewer points than there are constants, or a point has no cycles.
    """
    one, other = halves(points)
    return [
        priced
        for seen, judged in ((one, other), (other, one))
        for priced in with_constants(
            judged, fitted(seen, around, latencies=latencies, errors=False).constants
        )
    ]


def judged(record: Comparison) -> Comparison:
    """Return a record in which each point that constants are fitted on has its `unseen_ms`.

    A chip with too few kernels in one of the halves is left without.
    """
    unseen: dict[str, float | None] = {}
    for chip in CLOCKS:
        points = to_fit_on(record, chip)
        if min(map(len, halves(points))) >= FEWEST:
            unseen |= {it.name: it.estimated_ms for it in crossed(points, in_use(chip))}
    return replace(
        record,
        points=tuple(replace(it, unseen_ms=_short(unseen.get(it.name))) for it in record.points),
    )


def _short(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else float(f"{milliseconds:.6g}")
