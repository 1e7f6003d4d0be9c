"""How far estimates have been from measured times, by chip.

The measurements are the medians of device time that the library tokamax 0.0.17 ships: for its
Pallas kernels (`ragged_dot`, flash attention, linear-softmax-cross-entropy; 0.19 to 319 ms), and
for two of its references, which are XLA's own code. Two constants of each chip, its frequency and
its share of HBM's rate, were fitted on a random half of the points of the Pallas kernels; nothing
was fitted on XLA's. Only the fastest configuration of a kernel was measured, so how well a slow one
is estimated is not known.

`PALLAS` and `XLA` were made with an earlier form of this method and libtpu 0.0.52, over all points.
This code has predicted a part of them again, from short to long times, with libtpu 0.0.50.1:
`AGAIN` and `XLA_AGAIN`. The ranges of estimates are made of the former, the larger errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


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


_TOKAMAX: Final = "medians of tokamax 0.0.17's Pallas kernels, libtpu 0.0.52"

PALLAS: Final = {
    "v5e": Accuracy(19, 0.018, _TOKAMAX),
    "v5p": Accuracy(55, 0.071, _TOKAMAX),
    "v6e": Accuracy(111, 0.055, _TOKAMAX),
    "tpu7x": Accuracy(41, 0.108, _TOKAMAX),
}
"""Errors for Pallas kernels. A chip that is not here was compared with no measurement."""

_AGAIN: Final = "medians of tokamax 0.0.17's Pallas kernels, libtpu 0.0.50.1"

AGAIN: Final = {
    "v5e": Accuracy(17, 0.009, _AGAIN),
    "v5p": Accuracy(26, 0.031, _AGAIN),
    "v6e": Accuracy(44, 0.045, _AGAIN),
    "tpu7x": Accuracy(24, 0.044, _AGAIN),
}
"""Errors for Pallas kernels as this code estimates them."""

XLA: Final = Accuracy(36, 0.212, "medians of tokamax 0.0.17's references, XLA's own code, on v6e")
"""Errors for XLA's own code, known of v6e alone and taken for the other chips."""

XLA_AGAIN: Final = Accuracy(
    36, 0.076, "medians of tokamax 0.0.17's references, XLA's own code, on v6e, libtpu 0.0.50.1"
)
"""Errors for XLA's own code as this code estimates it, on the same points as `XLA`: normalization
and gated linear units, 0.02 to 60 ms."""


def accuracy_of(chip: str, pallas: bool) -> Accuracy | None:
    """Return the errors to expect of an estimate; None where no measurement was at hand.

    Args:
      chip: the chip's name.
      pallas: whether Pallas kernels take most of the time.
    """
    if chip not in PALLAS:
        return None
    return PALLAS[chip] if pallas else XLA
