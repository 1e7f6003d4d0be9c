"""The table of errors: where it comes from, and the ranges that it gives."""

from __future__ import annotations

import pytest

from pallas_rungs.performance.accuracy import PALLAS, SHORT, XLA, Accuracy, accuracy_of
from pallas_rungs.performance.clock import CLOCKS


def test_a_range_is_one_error_below_and_above() -> None:
    low, high = Accuracy(3, 0.1, "three").range(2.0)
    assert (low, high) == pytest.approx((1.80967, 2.21034), rel=1e-5)


@pytest.mark.parametrize("chip", CLOCKS)
def test_every_chip_has_errors_or_none_at_all(chip: str) -> None:
    for pallas in (True, False):
        found = accuracy_of(chip, pallas, seconds=0.005)
        if chip in PALLAS:
            assert found is (PALLAS[chip] if pallas else XLA)
            assert "tokamax 0.0.17" in found.source
        else:
            assert found is None


@pytest.mark.parametrize("chip", PALLAS)
def test_a_short_kernel_has_the_error_of_short_kernels_or_a_larger_one(chip: str) -> None:
    assert SHORT is not None
    assert "below 1 ms" in SHORT.source
    found = accuracy_of(chip, pallas=True, seconds=2e-6)
    assert found is not None
    assert found.rms_log_error == max(SHORT.rms_log_error, PALLAS[chip].rms_log_error)
    assert SHORT.rms_log_error > PALLAS["v5e"].rms_log_error
    assert accuracy_of(chip, pallas=False, seconds=2e-6) is XLA
