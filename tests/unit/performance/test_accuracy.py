"""Whether the ranges of two estimates meet: the one place that says so."""

import pytest

from pallas_rungs.performance.accuracy import Range, ranges_meet


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ((1.0, 2.0), (1.9, 3.0), True),
        ((1.0, 3.0), (1.5, 2.0), True),
        ((1.0, 2.0), (2.0, 3.0), True),
        ((1.0, 1.5), (1.9, 3.0), False),
        ((None, None), (1.9, 3.0), None),
        ((1.0, None), (1.9, 3.0), None),
        ((None, 1.5), (1.9, 3.0), None),
    ],
)
def test_ranges_meet_or_do_not_or_nobody_knows(one: Range, other: Range, meet: bool | None) -> None:
    assert ranges_meet(one, other) is meet
    assert ranges_meet(other, one) is meet
