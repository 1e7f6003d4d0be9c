"""The exercise of the ladder's chapter: only a kernel that every rung passes is accepted."""

import pytest

from pallas_rungs.practice import column_sums


def test_the_solution_climbs_every_rung():
    report = column_sums.check(column_sums.solution)
    assert {v.rung for v in report.verdicts} >= {"trace", "interpret", "simulate", "lower"}


@pytest.mark.parametrize("kernel", column_sums.WRONG, ids=lambda kernel: kernel.__name__)
def test_a_wrong_kernel_is_rejected_with_its_report(kernel):
    with pytest.raises(AssertionError, match="not healthy yet"):
        column_sums.check(kernel)
