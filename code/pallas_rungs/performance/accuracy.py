"""How far estimates have been from measured times, by chip.

The measurements are the medians of device time that the library tokamax 0.0.17 ships for its Pallas
kernels (`ragged_dot`, flash attention, linear-softmax-cross-entropy), 0.19 to 319 ms. They were
predicted by this method with libtpu 0.0.52; two constants of each chip, its frequency and its share
of HBM's rate, were fitted on a random half of the same points. Only the fastest configuration of a
kernel was measured, so how well a slow one is estimated is not known.
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

XLA: Final = Accuracy(36, 0.212, "medians of tokamax 0.0.17's references, XLA's own code, on v6e")
"""Errors for XLA's own code, known of v6e alone and taken for the other chips."""


def accuracy_of(chip: str, pallas: bool) -> Accuracy | None:
    """Return the errors to expect of an estimate; None where no measurement was at hand.

    Args:
      chip: the chip's name.
      pallas: whether Pallas kernels take most of the time.
    """
    if chip not in PALLAS:
        return None
    return PALLAS[chip] if pallas else XLA
