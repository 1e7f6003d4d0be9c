"""The exercise of the first chapter: its check accepts the solution and rejects every slip."""

import pytest

from pallas_rungs.practice import reverse_chunks


def test_the_solution_passes():
    reverse_chunks.check(reverse_chunks.solution)


@pytest.mark.parametrize("kernel", reverse_chunks.WRONG, ids=lambda kernel: kernel.__name__)
def test_a_wrong_kernel_is_rejected(kernel):
    with pytest.raises(AssertionError, match=r"quarter \d|never written"):
        reverse_chunks.check(kernel)
