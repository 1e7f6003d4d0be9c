"""The chain's bytes, counted by hand."""

import jax
import jax.numpy as jnp
import pytest

from pallas_rungs.practice import bytes_of_a_chain
from pallas_rungs.practice.bytes_of_a_chain import cubes, scaled_rows, solution


def counted(chain, dtype):
    return solution(jax.make_jaxpr(chain)(jnp.zeros((8, 128), dtype)).jaxpr)


def test_the_solution_counts_what_a_hand_does():
    array, column = 8 * 128 * 4, 8 * 4
    assert counted(cubes, "float32") == (1 + 1 + 2 + 1) * array
    # Square and sum; five small steps, from the sum to the root; the last product reads both.
    small = 2 * column * 4
    assert counted(scaled_rows, "float32") == (2 + 1 + 2) * array + 2 * column + small
    # Two conversions more, each of which moves six bytes for an element.
    more = 2 * 6 * 8 * 128
    assert counted(scaled_rows, "bfloat16") == counted(scaled_rows, "float32") + more


def test_a_wrong_count_without_a_name_gets_a_hint_as_well():
    with pytest.raises(AssertionError, match="take one equation after the other"):
        bytes_of_a_chain.check(lambda jaxpr: 7)
