"""The exercise's solution plans what the library does, for more blocks than its check tries."""

import random

import pytest

from pallas_rungs.practice.input_schedule import by_the_library, solution


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_the_solution_agrees_with_the_library_on_random_blocks(slots: int) -> None:
    rng = random.Random(slots)
    for length in (1, 2, 5, 8):
        blocks = tuple(rng.choices(range(3), k=length))
        assert tuple(solution(blocks, slots)) == by_the_library(blocks, slots)
