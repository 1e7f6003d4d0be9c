"""The softmax against NumPy in float64, where it is delicate, and its refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.softmax import softmax, softmax_reference
from unit.kernels.matrices import (
    BFLOAT16,
    FLOAT32,
    GATE,
    float64,
    lengths,
    matrix,
    seeds,
    sizes,
)


@GATE
@given(
    M=lengths,
    N=lengths,
    bm=sizes(8, 320),
    offset=st.sampled_from([0.0, 1e4, -1e4, 1e30]),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_rows_are_shares_of_one(
    M: int, N: int, bm: int, offset: float, dtype: Any, seed: int
) -> None:
    x = (matrix(seed, M, N, np.float64) + offset).astype(dtype)
    got = softmax(x, bm=bm, interpret=True)
    assert (got.shape, got.dtype) == (x.shape, dtype)
    rtol = 1e-5 if dtype == FLOAT32 else 2.0**-8 + 1e-5
    np.testing.assert_allclose(float64(got), softmax_reference(x), rtol=rtol, atol=1e-30)


def test_minus_infinity_gets_nothing_and_a_row_of_it_is_undefined() -> None:
    x = np.zeros((8, 128), np.float32)
    x[0, :64] = -np.inf
    x[1] = -np.inf
    got = np.asarray(softmax(x, interpret=True))
    np.testing.assert_array_equal(got[0], [0.0] * 64 + [1 / 64] * 64)
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(got[2:], 1 / 128)
    assert np.isnan(softmax_reference(x[1:2])).all()


def test_the_reference_is_the_formula() -> None:
    x = matrix(0, 6, 40, BFLOAT16)
    e = np.exp(x.astype(np.float64))
    got = softmax_reference(x)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, e / e.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-14)


ones = np.ones((16, 256), np.float32)


@pytest.mark.parametrize(
    ("x", "bm", "message"),
    [
        (ones[0], 8, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (ones[:0], 8, "a grid over nothing runs no program"),
        (ones.astype(np.int32), 8, "the dtype of x is int32.*float32 and bfloat16"),
        (ones, 4, "bm is 4, but a block takes a multiple of 8 of this axis or all 16 of it"),
        (ones, 0, "bm is 0, but a block has at least one element"),
        (ones, (8, 128), "bm is a tuple, but a block size is fixed before"),
    ],
)
def test_arguments_that_do_not_fit(x: np.ndarray, bm: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        softmax(x, bm=bm, interpret=True)
