"""Both additions against NumPy in float64, and their refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.add import add, add_reference, add_whole
from unit.kernels.matrices import (
    BFLOAT16,
    FLOAT32,
    GATE,
    INT32,
    RTOL,
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
    bn=sizes(128, 384),
    dtype=st.sampled_from([FLOAT32, BFLOAT16, INT32]),
    seed=seeds,
)
def test_blocks_add_up(M: int, N: int, bm: int, bn: int, dtype: Any, seed: int) -> None:
    x, y = matrix(seed, M, N, dtype), matrix(seed + 1, M, N, dtype)
    got = add(x, y, block=(bm, bn), interpret=True)
    assert (got.shape, got.dtype) == (x.shape, dtype)
    np.testing.assert_allclose(float64(got), add_reference(x, y), rtol=RTOL[dtype], atol=1e-6)


@GATE
@given(M=lengths, N=lengths, dtype=st.sampled_from([FLOAT32, BFLOAT16, INT32]), seed=seeds)
def test_whole_arrays_add_up(M: int, N: int, dtype: Any, seed: int) -> None:
    x, y = matrix(seed, M, N, dtype), matrix(seed + 1, M, N, dtype)
    got = add_whole(x, y, interpret=True)
    assert (got.shape, got.dtype) == (x.shape, dtype)
    np.testing.assert_allclose(float64(got), add_reference(x, y), rtol=RTOL[dtype], atol=1e-6)


def test_the_reference_is_float64_addition() -> None:
    x, y = matrix(0, 30, 40, BFLOAT16), matrix(1, 30, 40, BFLOAT16)
    want = x.astype(np.float64) + y.astype(np.float64)
    assert add_reference(x, y).dtype == np.float64
    np.testing.assert_array_equal(add_reference(x, y), want)


ones = np.ones((16, 256), np.float32)


@pytest.mark.parametrize("call", [add, add_whole])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (ones, ones[:1], r"the shape of y is \(1, 256\), but it must be that of x, \(16, 256\)"),
        (ones, ones.astype(np.int32), "the dtype of y is int32, but it must be that of x, float32"),
        (ones[0], ones[0], r"the shape of x is \(256,\), but the kernel takes matrices"),
        (ones[:0], ones[:0], "a grid over nothing runs no program"),
        (ones.astype(np.float64), ones, "the dtype of x is float64"),
    ],
    ids=["shapes", "dtypes", "vector", "empty", "float64"],
)
def test_operands_that_do_not_fit(call: Any, x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(x, y, interpret=True)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128), "bm is 4, but a block takes a multiple of 8 of this axis or all 16 of it"),
        ((8, 100), "bn is 100, but a block takes a multiple of 128"),
        ((8, 0), "bn is 0, but a block has at least one element"),
        ((8.0, 128), "bm is a float, but a block size is fixed before the kernel is traced"),
        ((8,), r"block is \(8,\), but the kernel takes \(bm, bn\)"),
        (8, r"block is 8, but the kernel takes \(bm, bn\)"),
    ],
)
def test_blocks_that_no_chip_takes(block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        add(ones, ones, block=block, interpret=True)
