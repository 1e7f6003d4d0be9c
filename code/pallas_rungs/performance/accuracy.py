"""How far estimates have been from measured times, by chip: computed from the record.

The measurements are medians of device time that the library tokamax ships, for Pallas kernels and
for XLA's own code; `validation` keeps the record of their comparison. Some constants of each chip
were fitted on the same measurements, and a fit flatters what it has seen. So an error here is that
of estimates whose constants were fitted on the half of the shapes that the point is not in; XLA's
own code is in no fit. Of a Pallas kernel only the fastest configuration was measured, so how well a
slow one is estimated is not known.

A short program is estimated less well than a long one, and a chip may have been compared by long
ones alone. So below a millisecond an estimate carries the error of all short kernels, unless that
of its chip is larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pallas_rungs.performance.clock import CLOCKS
from pallas_rungs.performance.sealed import RecordError
from pallas_rungs.performance.validation import (
    RECORD,
    SMALL,
    Comparison,
    constants_of,
    of_unseen,
    read_record,
)

FEWEST: Final = 5
"""Points below which no error of a chip is told."""

Range = tuple[float | None, float | None]
"""The least and the largest time that an estimate stands for; None where its error is not known."""


@dataclass(frozen=True)
class Accuracy:
    """The errors on one chip.

    Attributes:
      points: measured medians that were compared.
      rms_log_error: root of the mean square of log(estimate / measurement).
      source: what was compared.
    """

    points: int
    rms_log_error: float
    source: str

    def range(self, seconds: float) -> tuple[float, float]:
        """Return the times one such error below and above an estimate."""
        return seconds * math.exp(-self.rms_log_error), seconds * math.exp(self.rms_log_error)


def ranges_meet(one: Range, other: Range) -> bool | None:
    """Say whether two ranges have a time in common; None where one of them is not known.

    Two estimates whose ranges meet do not say which program is faster.
    """
    (low, high), (other_low, other_high) = one, other
    if low is None or high is None or other_low is None or other_high is None:
        return None
    return low <= other_high and other_low <= high


def accuracy_on(
    record: Comparison, chips: Sequence[str], pallas: bool, *, short: bool = False
) -> Accuracy | None:
    """Return the errors of a record's Pallas kernels, or of XLA's own code, on some chips.

    With `short`, only those are taken that were measured at less than `SMALL` milliseconds.

    Points whose configuration is not stored are left aside: they may be of other kernels than were
    measured. So are chips whose constants are no longer those that the record was made with. None
    where fewer than `FEWEST` points are left.
    """
    same = [chip for chip in chips if record.constants.get(chip) == constants_of(chip)]
    points = [p for p in record.estimated if p.chip in same and p.pallas == pallas and p.stored]
    points = [p for p in points if not short or p.measured_ms < SMALL]
    if len(points) < FEWEST:
        return None
    seen = [chip for chip in same if any(point.chip == chip for point in points)]
    operations = sorted({point.operation for point in points})
    code = "Pallas kernels" if pallas else f"XLA's own code, of {' and '.join(operations)}"
    code += f" below {SMALL:g} ms" if short else ""
    code += f", on {', '.join(seen)}" if len(chips) > 1 else ""
    return Accuracy(
        len(points),
        round(of_unseen(points).rms_log_error, 3),
        f"medians of tokamax {record.versions['tokamax']}'s {code}, "
        f"libtpu {record.versions['libtpu']}",
    )


def _of_record() -> tuple[dict[str, Accuracy], Accuracy | None, Accuracy | None]:
    try:
        record = read_record(RECORD, same_constants=False)
    except RecordError:  # then no error is known, and an estimate says so
        return {}, None, None
    by_chip = {chip: accuracy_on(record, (chip,), pallas=True) for chip in CLOCKS}
    pallas = {chip: found for chip, found in by_chip.items() if found is not None}
    return (
        pallas,
        accuracy_on(record, tuple(pallas), pallas=True, short=True),
        accuracy_on(record, tuple(pallas), pallas=False),
    )


PALLAS, SHORT, XLA = _of_record()
"""Errors for Pallas kernels by chip, for the short ones of all chips, and for XLA's own code on all
chips. A chip that is not in `PALLAS` was compared with too few measurements; SHORT and XLA are None
where all were."""


def accuracy_of(chip: str, pallas: bool, seconds: float) -> Accuracy | None:
    """Return the errors to expect of an estimate; None where no measurement was at hand.

    Args:
      chip: the chip's name.
      pallas: whether Pallas kernels take most of the time.
      seconds: the estimate.
    """
    if chip not in PALLAS:
        return None
    if not pallas:
        return XLA
    here = PALLAS[chip]
    if seconds * 1e3 < SMALL and SHORT is not None:
        return max(here, SHORT, key=lambda it: it.rms_log_error)
    return here
