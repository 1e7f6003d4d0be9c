"""One copy in, one addition, one copy out, against NumPy in float64, and the refusals."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.add_one_by_hand import add_one_by_hand, add_one_by_hand_reference
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, RTOL, float64, lengths, matrix, seeds


@FEW
@given(M=lengths, N=lengths, dtype=st.sampled_from([FLOAT32, BFLOAT16]), seed=seeds)
def test_it_adds_one(M: int, N: int, dtype: Any, seed: int) -> None:
    x = matrix(seed, M, N, dtype)
    got = add_one_by_hand(x, interpret=True)
    assert got.dtype == dtype
    np.testing.assert_allclose(float64(got), add_one_by_hand_reference(x), rtol=RTOL[dtype], atol=0)


def test_each_copy_is_awaited_before_its_target_is_read() -> None:
    # In this simulator a copy takes place when it is waited for, and fresh memory holds NaN.
    x = matrix(0, 8, 128, FLOAT32)
    got = add_one_by_hand(x, interpret=pltpu.InterpretParams(detect_races=True))
    np.testing.assert_array_equal(got, x + 1)


def test_the_reference_adds_one() -> None:
    want = add_one_by_hand_reference(jnp.array([[1.5, -1.0]], jnp.bfloat16))
    assert want.dtype == np.float64
    np.testing.assert_array_equal(want, [[2.5, 0.0]])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((8, 128), np.int32), "the dtype of x is int32.*float32 and bfloat16"),
        (np.ones(128, np.float32), r"the shape of x is \(128,\), but the kernel takes matrices"),
        (np.ones((0, 128), np.float32), "a grid over nothing runs no program"),
    ],
)
def test_what_it_does_not_take(x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        add_one_by_hand(x, interpret=True)
