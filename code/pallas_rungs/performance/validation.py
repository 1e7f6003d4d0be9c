"""Estimates held against measured medians: the record of it, and what it says in numbers.

`make validate-estimator` compiles tokamax's kernels with their stored configurations, estimates
them, and adds each point to a record, which takes long and is not part of a build. Whoever shows
figures of it computes them from the record, here.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pallas_rungs.performance.clock import CLOCKS
from pallas_rungs.performance.medians import XLA
from pallas_rungs.performance.provenance import ESTIMATE, MEASUREMENT, UNKNOWN, Provenance, Quantity
from pallas_rungs.performance.sealed import FOLDER, RecordError, read_sealed, sealed
from pallas_rungs.performance.units import SECONDS

RECORD: Final = FOLDER / "estimates-and-medians.json"
"""The record of the comparison."""

WITHIN: Final = (0.05, 0.10, 0.20)
"""Distances, as parts of the measurement, whose share of points is told."""

_TUPLES: Final = ("unresolved", "byte_cycles", "cycles", "latencies")

SMALL: Final = 1.0
"""Milliseconds below which a kernel counts as short."""


@dataclass(frozen=True)
class Compared:
    """One kernel, estimated and measured.

    Attributes:
      name: chip, operation, and where it stands in tokamax's file.
      chip: the chip's name.
      operation: what the kernel computes.
      shapes: its arrays, in words.
      config: the configuration that was measured.
      measured_ms: median of the measured times, in milliseconds.
      estimated_ms: the estimate, in milliseconds; None where there is none.
      operations: of the matrix units, that the task needs.
      bytes: of the task's arguments and results, each once.
      hbm_bytes: that the estimate says are moved.
      stalled: part of the cycles in which the main kernel waits for DMAs.
      bound: what the estimate says that the main kernel is bound by.
      unresolved: what the estimate had to guess.
      failed: why there is no estimate; empty where there is one.
      programs: how many programs a run executes, Pallas kernels and XLA's own code alike; 0 where
        that was not recorded.
      in_xla: which part of the estimate XLA's own programs take.
      byte_cycles: cycles that HBM may take for a byte, in ascending order.
      cycles: what a run takes in cycles at each of them; empty where it was not recorded.
      latencies: cycles that a transfer's bytes may be under way, in ascending order.
      late: for each of them, what a run takes in cycles at each of `byte_cycles`.
      unseen_ms: the estimate with constants fitted on the half of the shapes that the point is not
        in; None where constants are never fitted on such a point.
    """

    name: str
    chip: str
    operation: str
    shapes: str
    config: dict[str, Any]
    measured_ms: float
    estimated_ms: float | None = None
    operations: int = 0
    bytes: int = 0
    hbm_bytes: int = 0
    stalled: float = 0.0
    bound: str = ""
    unresolved: tuple[str, ...] = ()
    failed: str = ""
    programs: int = 0
    in_xla: float = 0.0
    byte_cycles: tuple[float, ...] = ()
    cycles: tuple[float, ...] = ()
    latencies: tuple[float, ...] = ()
    late: tuple[tuple[float, ...], ...] = ()
    unseen_ms: float | None = None

    @property
    def pallas(self) -> bool:
        """Whether it is a Pallas kernel; else XLA's own code."""
        return self.operation not in XLA

    @property
    def stored(self) -> bool:
        """Whether the measured configuration is stored, and not left to the kernel to choose.

        What a kernel chooses is of the library's version: it may have chosen otherwise when it was
        measured.
        """
        return all(value is not None for value in self.config.values())

    @property
    def ratio(self) -> float:
        """The estimate divided by the measurement.

        Raises:
          ValueError: there is no estimate.
        """
        if self.estimated_ms is None:
            raise ValueError(f"{self.name} has no estimate: {self.failed}")
        return self.estimated_ms / self.measured_ms


@dataclass(frozen=True)
class Neighbour:
    """Another configuration of a point than the fastest one: not measured for us.

    Attributes:
      of: the name of the point whose stored configuration was the fastest.
      config: the configuration.
      estimated_ms: the estimate, in milliseconds; None where there is none.
      failed: why there is no estimate; empty where there is one.
    """

    of: str
    config: dict[str, Any]
    estimated_ms: float | None
    failed: str = ""


@dataclass(frozen=True)
class Choice:
    """How estimates rank a configuration that was measured to be the fastest.

    Attributes:
      point: the point of the stored configuration.
      rank: 1 where no neighbour is estimated to be faster.
      candidates: estimated configurations, the stored one among them.
      best: the least estimate of them divided by that of the stored one: 1 or below.
      worst: the largest, likewise: 1 or above.
      refused: neighbours without an estimate.
    """

    point: Compared
    rank: int
    candidates: int
    best: float
    worst: float
    refused: int


@dataclass(frozen=True)
class Comparison:
    """The record.

    Attributes:
      days: on which points were added, the first and the last: `2026-11-30`.
      versions: of jax, jaxlib, libtpu and tokamax.
      method: how the estimates were made.
      constants: the chips' constants that they were made with, by chip and name.
      points: what was compared, and what failed.
      left_out: chip and operation, and for each reason how many of tokamax's keys it left out.
      neighbours: configurations next to the stored ones of some points.
      tried: other configurations of some points, estimated to find out why the point is missed.
    """

    days: tuple[str, str]
    versions: dict[str, str]
    method: str
    constants: dict[str, dict[str, float]]
    points: tuple[Compared, ...]
    left_out: dict[str, dict[str, int]]
    neighbours: tuple[Neighbour, ...] = ()
    tried: tuple[Neighbour, ...] = ()

    @property
    def choices(self) -> tuple[Choice, ...]:
        """How the points with neighbours rank among them."""
        return tuple(
            choice(point, [each for each in self.neighbours if each.of == point.name])
            for point in self.estimated
            if any(each.of == point.name for each in self.neighbours)
        )

    @property
    def made(self) -> str:
        """The date of the record: the day of its last point."""
        return self.days[1]

    @property
    def estimated(self) -> tuple[Compared, ...]:
        """The points that have an estimate."""
        return tuple(point for point in self.points if not point.failed)

    def provenance(self, points: Sequence[Compared]) -> tuple[Provenance, Provenance]:
        """Return where the estimates and the measurements of some points come from.

        Raises:
          ValueError: there is no point, or they are of several chips.
        """
        (chip,) = {point.chip for point in points}
        several = f"the shapes of {len(points)} points of the record"
        arguments = (points[0].shapes if len(points) == 1 else several,)
        of_tokamax = self.versions["tokamax"]
        estimates = Provenance(
            ESTIMATE, chip, arguments, self.method, self.versions, date=self.made
        )
        measurements = Provenance(
            MEASUREMENT,
            chip,
            arguments,
            "median of the five times that the library ships of its fastest configuration; with "
            "which libtpu it does not say; measured",
            {"tokamax": of_tokamax},
            date=UNKNOWN,
            code=f"of tokamax {of_tokamax}",
        )
        return estimates, measurements

    def quantities(self, point: Compared) -> tuple[Quantity, Quantity]:
        """Return a point's estimate and its measurement, each with where it comes from.

        Raises:
          ValueError: the point has no estimate.
        """
        estimated, measured = self.provenance([point])
        seconds = point.measured_ms / 1e3
        return Quantity(point.ratio * seconds, SECONDS, estimated), Quantity(
            seconds, SECONDS, measured
        )

    @property
    def remark(self) -> str:
        """Where its figures come from, in a sentence."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        first, last = self.days
        when = first if first == last else f"{first} to {last}"
        return (
            f"{len(self.estimated)} estimates of {when}, made with {versions}; "
            f"the measured medians are tokamax's own"
        )


@dataclass(frozen=True)
class Agreement:
    """How near estimates are to measurements.

    Attributes:
      points: how many.
      median: of estimate / measurement.
      within: the share of points within 5, 10 and 20 % of the measurement.
      rms_log_error: root of the mean square of log(estimate / measurement).
      rank_correlation: Spearman's, of estimates with measurements; NaN for fewer than 3 points.
    """

    points: int
    median: float
    within: tuple[float, float, float]
    rms_log_error: float
    rank_correlation: float


def agreement(pairs: Iterable[tuple[float, float]]) -> Agreement:
    """Say how near estimates are to measurements.

    Args:
      pairs: an estimate and its measurement, both positive, in the same unit.

    Raises:
      ValueError: there is no pair, or a time is not positive.
    """
    pairs = list(pairs)
    if not pairs:
        raise ValueError("there is no estimate to compare with a measurement")
    for estimated, measured in pairs:
        if not (estimated > 0 and measured > 0):
            raise ValueError(f"times are positive; got {estimated} estimated, {measured} measured")
    ratios = [estimated / measured for estimated, measured in pairs]
    near = [sum(abs(ratio - 1) <= limit for ratio in ratios) / len(ratios) for limit in WITHIN]
    squares = [math.log(ratio) ** 2 for ratio in ratios]
    return Agreement(
        len(pairs),
        statistics.median(ratios),
        (near[0], near[1], near[2]),
        math.sqrt(statistics.fmean(squares)),
        rank_correlation([pair[0] for pair in pairs], [pair[1] for pair in pairs]),
    )


def of_estimates(points: Iterable[Compared]) -> Agreement:
    """Say how near the estimates of points are to their measurements."""
    return agreement((point.ratio * point.measured_ms, point.measured_ms) for point in points)


def of_unseen(points: Iterable[Compared]) -> Agreement:
    """Say how near estimates are whose constants were fitted without the point that they are of."""
    return agreement(
        (point.unseen_ms or point.ratio * point.measured_ms, point.measured_ms) for point in points
    )


def priced(point: Compared, milliseconds: float) -> Compared:
    """Return a point with another estimate of its time."""
    return replace(point, estimated_ms=milliseconds)


def of_bounds(points: Iterable[Compared], bound: Callable[[Compared], float]) -> Agreement:
    """Say how near a bound of the same points is to their measurements.

    Args:
      points: the points.
      bound: returns milliseconds.
    """
    return agreement((bound(point), point.measured_ms) for point in points)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's rank correlation, equal values sharing their mean rank.

    NaN where it is not defined: fewer than 3 values, or all of them equal.
    """
    if len(one) < 3 or len(set(one)) == 1 or len(set(other)) == 1:
        return math.nan
    return statistics.correlation(_ranks(one), _ranks(other))


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for place, value in enumerate(order):
        first.setdefault(value, place)
        last[value] = place
    return [(first[value] + last[value]) / 2 for value in values]


def roofline_ms(point: Compared, rate: float, bandwidth: float) -> float:
    """Return the time that a roofline allows a point's task, in milliseconds.

    Args:
      point: the point.
      rate: operations a second of the matrix units that the program uses.
      bandwidth: bytes a second of HBM.
    """
    return 1e3 * max(point.operations / rate, point.bytes / bandwidth)


@dataclass(frozen=True)
class Pair:
    """Two kernels for the same task on the same chip, both measured.

    Attributes:
      first: one of them.
      second: the other.
    """

    first: Compared
    second: Compared

    @property
    def measured(self) -> float:
        """The second's measured time divided by the first's."""
        return self.second.measured_ms / self.first.measured_ms

    @property
    def estimated(self) -> float:
        """The second's estimate divided by the first's."""
        return self.measured * self.second.ratio / self.first.ratio

    @property
    def sign_right(self) -> bool:
        """Whether the estimates name the faster one."""
        return (self.measured > 1) == (self.estimated > 1)


def pairs(points: Iterable[Compared], one: str, other: str) -> tuple[Pair, ...]:
    """Return the tasks that two operations of the record share: the same chip and shapes."""
    by_task: dict[tuple[str, str], dict[str, Compared]] = {}
    for point in points:
        by_task.setdefault((point.chip, point.shapes), {}).setdefault(point.operation, point)
    return tuple(
        Pair(found[one], found[other])
        for found in by_task.values()
        if one in found and other in found
    )


def choice(point: Compared, neighbours: Iterable[Neighbour]) -> Choice:
    """Say how the estimates rank a configuration that was measured to be the fastest.

    Raises:
      ValueError: the point has no estimate.
    """
    neighbours = list(neighbours)
    times = [each.estimated_ms for each in neighbours if each.estimated_ms is not None]
    own = point.ratio * point.measured_ms
    return Choice(
        point,
        rank=1 + sum(time < own for time in times),
        candidates=1 + len(times),
        best=min([own, *times]) / own,
        worst=max([own, *times]) / own,
        refused=len(neighbours) - len(times),
    )


def grouped(points: Iterable[Compared]) -> dict[tuple[str, str], list[Compared]]:
    """Return points by chip and operation, in the order of the chips' table."""
    found: dict[tuple[str, str], list[Compared]] = {}
    for point in points:
        found.setdefault((point.chip, point.operation), []).append(point)
    chips = list(CLOCKS)
    return dict(sorted(found.items(), key=lambda item: (chips.index(item[0][0]), item[0][1])))


@lru_cache(maxsize=1)
def comparison() -> Comparison:
    """Return the record that this version of the program keeps.

    Raises:
      RecordError: it is missing, was changed by hand, or was made with other constants.
    """
    return read_record(RECORD)


def read_record(path: Path, *, same_constants: bool = True) -> Comparison:
    """Read a record of a comparison.

    Args:
      path: the file.
      same_constants: whether it must have been made with the constants of `clock.CLOCKS`.

    Raises:
      RecordError: it is missing, was changed by hand, or was made with other constants.
    """
    how = "`make validate-estimator` writes it"
    kept = read_sealed(path, how)
    for chip, constants in kept["constants"].items():
        now = constants_of(chip)
        if same_constants and now != constants:
            changed = ", ".join(
                f"{name} {constants.get(name)} then, {value} now"
                for name, value in now.items()
                if constants.get(name) != value
            )
            raise RecordError(
                f"{path.name} was made with other constants of {chip} ({changed}); `make "
                'validate-estimator WITH="--renew"` estimates its points anew'
            )
    points = tuple(_point(point) for point in kept["points"])
    first, last = kept["made"]
    return Comparison(
        (first, last),
        kept["versions"],
        kept["method"],
        kept["constants"],
        points,
        kept["left_out"],
        tuple(Neighbour(**each) for each in kept["neighbours"]),
        tuple(Neighbour(**each) for each in kept.get("tried", ())),
    )


def _point(kept: Mapping[str, Any]) -> Compared:
    values: dict[str, Any] = {
        name: tuple(value) if name in _TUPLES else value for name, value in kept.items()
    }
    values["late"] = tuple(map(tuple, values.get("late", ())))
    return Compared(**values)


def write_record(path: Path, found: Comparison) -> None:
    """Write a record, its points in the order of chips, operations and entries.

    Raises:
      OSError: the file cannot be written.
    """
    chips = list(CLOCKS)

    def place(point: Compared) -> tuple[int, str, int]:
        return chips.index(point.chip), point.operation, int(point.name.rsplit("/", 1)[1])

    kept = sealed(
        {
            "kind": "estimates and measured medians",
            "made": list(found.days),
            "versions": found.versions,
            "method": found.method,
            "constants": found.constants,
            "left_out": found.left_out,
            "neighbours": [asdict(each) for each in found.neighbours],
            "tried": [asdict(each) for each in found.tried],
            "points": [asdict(point) for point in sorted(found.points, key=place)],
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({name: kept[name] for name in kept if name != "points"}, indent=1)
    lines = ",\n  ".join(json.dumps(point, ensure_ascii=False) for point in kept["points"])
    text = head.removesuffix("\n}") + ',\n "points": [\n  ' + lines + "\n ]\n}\n"
    path.write_text(text, "utf-8")


def added(found: Comparison, point: Compared, day: str) -> Comparison:
    """Return a record with a point more, or with that point anew."""
    others = tuple(one for one in found.points if one.name != point.name)
    return replace(
        found,
        days=(min(found.days[0], day), max(found.days[1], day)),
        points=(*others, point),
        constants={**found.constants, point.chip: constants_of(point.chip)},
    )


def constants_of(chip: str) -> dict[str, float]:
    """Return the values of a chip's constants, by name."""
    return {name: constant.value for name, constant in CLOCKS[chip].constants().items()}
