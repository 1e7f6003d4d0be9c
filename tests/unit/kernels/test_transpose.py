"""Transposition against NumPy, and its refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.transpose import transpose, transpose_reference
from unit.kernels.matrices import (
    BFLOAT16,
    FLOAT32,
    GATE,
    INT32,
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
    bm=sizes(128, 384),
    bn=sizes(128, 384),
    dtype=st.sampled_from([FLOAT32, BFLOAT16, INT32]),
    seed=seeds,
)
def test_rows_become_columns(M: int, N: int, bm: int, bn: int, dtype: Any, seed: int) -> None:
    x = matrix(seed, M, N, dtype)
    got = transpose(x, block=(bm, bn), interpret=True)
    assert got.dtype == dtype
    np.testing.assert_array_equal(float64(got), transpose_reference(x))


def test_the_reference_swaps_the_indices() -> None:
    x = matrix(0, 3, 5, BFLOAT16)
    want = [[float(x[i, j]) for i in range(3)] for j in range(5)]
    assert transpose_reference(x).dtype == np.float64
    np.testing.assert_array_equal(transpose_reference(x), want)


ones = np.ones((256, 384), np.float32)


@pytest.mark.parametrize(
    ("x", "block", "message"),
    [
        (ones[0], (128, 128), "the kernel takes matrices"),
        (ones.astype(np.float16), (128, 128), "the dtype of x is float16"),
        (ones, (8, 128), "bm is 8, but a block takes a multiple of 128 of this axis or all 256"),
        (ones, (128, 8), "bn is 8, but a block takes a multiple of 128 of this axis or all 384"),
        (ones, (128, -1), "bn is -1, but a block has at least one element"),
        (ones, (128,), r"block is \(128,\), but the kernel takes \(bm, bn\)"),
    ],
)
def test_arguments_that_do_not_fit(x: np.ndarray, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        transpose(x, block=block, interpret=True)
