"""How far estimates have been from measured times, by chip: computed from the record.

The measurements are medians of device time that the library tokamax ships, for Pallas kernels and
for XLA's own code; `validation` keeps the record of their comparison. Two constants of each chip,
its frequency and its share of HBM's rate, were fitted on measurements of the same library. Of a
Pallas kernel only the fastest configuration was measured, so how well a slow one is estimated is
not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pallas_rungs.performance.clock import CLOCKS
from pallas_rungs.performance.validation import (
    RECORD,
    Comparison,
    RecordError,
    constants_of,
    of_estimates,
    read_record,
)

FEWEST: Final = 5
"""Points below which no error of a chip is told."""


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


def accuracies(record: Comparison, pallas: bool) -> dict[str, Accuracy]:
    """Return the errors by chip, of a record's Pallas kernels or of XLA's own code.

    A chip is left out where the record has fewer than `FEWEST` points of it, or where its constants
    are no longer those that the record was made with.
    """
    found = {}
    code = "Pallas kernels" if pallas else "reference operations, XLA's own code"
    source = (
        f"medians of tokamax {record.versions['tokamax']}'s {code}, "
        f"libtpu {record.versions['libtpu']}"
    )
    for chip in CLOCKS:
        if record.constants.get(chip) != constants_of(chip):
            continue
        points = [p for p in record.estimated if p.chip == chip and p.pallas == pallas]
        if len(points) >= FEWEST:
            error = round(of_estimates(points).rms_log_error, 3)
            found[chip] = Accuracy(len(points), error, source)
    return found


def _kept(pallas: bool) -> Mapping[str, Accuracy]:
    try:
        record = read_record(RECORD, same_constants=False)
    except RecordError:  # then no error is known, and an estimate says so
        return MappingProxyType({})
    return MappingProxyType(accuracies(record, pallas))


PALLAS: Final = _kept(pallas=True)
"""Errors for Pallas kernels. A chip that is not here was compared with too few measurements."""

XLA: Final = _kept(pallas=False)
"""Errors for XLA's own code, likewise."""


def accuracy_of(chip: str, pallas: bool) -> Accuracy | None:
    """Return the errors to expect of an estimate; None where no measurement was at hand.

    Args:
      chip: the chip's name.
      pallas: whether Pallas kernels take most of the time.
    """
    return (PALLAS if pallas else XLA).get(chip)
