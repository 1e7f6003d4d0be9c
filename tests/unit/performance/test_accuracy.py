"""The table of errors: where it comes from, and the ranges that it gives."""

from __future__ import annotations

import pytest

from pallas_rungs.performance.accuracy import AGAIN, PALLAS, XLA, XLA_AGAIN, Accuracy, accuracy_of
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


def test_this_code_is_at_least_as_good_as_what_the_ranges_are_made_of() -> None:
    assert AGAIN.keys() == PALLAS.keys()
    for chip, found in AGAIN.items():
        assert found.rms_log_error <= PALLAS[chip].rms_log_error
        assert found.points <= PALLAS[chip].points
    assert XLA_AGAIN.points == XLA.points
    assert XLA_AGAIN.rms_log_error <= XLA.rms_log_error
