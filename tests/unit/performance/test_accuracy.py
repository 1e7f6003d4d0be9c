"""The table of errors: where it comes from, and the ranges that it gives."""

from __future__ import annotations

import pytest

from pallas_rungs.performance.accuracy import PALLAS, XLA, Accuracy, accuracy_of
from pallas_rungs.performance.clock import CLOCKS


def test_a_range_is_one_error_below_and_above() -> None:
    low, high = Accuracy(3, 0.1, "three").range(2.0)
    assert (low, high) == pytest.approx((1.80967, 2.21034), rel=1e-5)


@pytest.mark.parametrize("chip", CLOCKS)
def test_every_chip_has_errors_or_none_at_all(chip: str) -> None:
    for pallas in (True, False):
        found = accuracy_of(chip, pallas)
        if chip in PALLAS:
            assert found is (PALLAS[chip] if pallas else XLA)
            assert "tokamax 0.0.17" in found.source
        else:
            assert found is None
