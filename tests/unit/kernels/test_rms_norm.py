"""RMSNorm against NumPy in float64, to its derived bound, where it is delicate; its refusals."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.bounds import assert_within, rms_norm_bound
from pallas_rungs.kernels.rms_norm import rms_norm, rms_norm_reference
from unit.kernels.launches import launches
from unit.kernels.matrices import (
    BFLOAT16,
    FEW,
    FLOAT32,
    lengths,
    matrix,
    seeds,
    sizes,
)


@FEW
@given(
    M=lengths,
    N=lengths,
    bm=sizes(8, 320),
    scale=st.sampled_from([1.0, 1e-4, 1e15]),
    eps=st.sampled_from([1e-6, 0.5]),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    weights=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_rows_come_out_scaled_to_within_the_bound(
    M: int, N: int, bm: int, scale: float, eps: float, dtype: Any, weights: Any, seed: int
) -> None:
    x = (scale * matrix(seed, M, N, np.float64)).astype(dtype)
    w = matrix(seed + 1, 1, N, weights)[0]
    got = rms_norm(x, w, eps=eps, bm=bm, interpret=True)
    assert (got.shape, got.dtype) == (x.shape, dtype)
    assert_within(got, rms_norm_reference(x, w, eps), rms_norm_bound(x, w, eps))


def test_a_row_does_not_feel_the_others() -> None:
    x = np.ones((40, 128), np.float32) * 10.0 ** np.arange(-20, 20)[:, None].clip(-15, 15)
    x = x.astype(np.float32)
    w = np.ones(128, np.float32)
    got = rms_norm(x, w, bm=16, interpret=True)
    assert_within(got, rms_norm_reference(x, w), rms_norm_bound(x, w))
    np.testing.assert_allclose(got[25:], 1.0, rtol=1e-5)


def test_zeros_stay_zero_and_the_default_eps_decides_what_is_small() -> None:
    x = np.zeros((8, 128), np.float32)
    x[1] = 1e-3
    got = np.asarray(rms_norm(x, np.ones(128, np.float32), interpret=True))
    np.testing.assert_array_equal(got[0], 0.0)
    np.testing.assert_allclose(got[1], math.sqrt(0.5), rtol=1e-6)


def test_squares_are_summed_in_float32_for_bfloat16_too() -> None:
    x = np.ones((8, 4096), BFLOAT16)  # in bfloat16 the sum of ones stops at 256
    got = np.asarray(rms_norm(x, np.ones(4096, np.float32), interpret=True), np.float32)
    np.testing.assert_array_equal(got, 1.0)


def test_squares_that_overflow_leave_a_row_of_zeros() -> None:
    x = np.full((8, 128), 1e19, np.float32)
    got = rms_norm(x, np.ones(128, np.float32), interpret=True)
    np.testing.assert_array_equal(got, 0.0)


def test_blocks_and_weights_are_shared_by_the_default_call() -> None:
    x, w = matrix(0, 130, 128, FLOAT32), matrix(1, 1, 128, FLOAT32)[0]
    (launch,) = launches(rms_norm, x, w)
    grid = launch["grid_mapping"]
    assert grid.grid == (3,)
    shapes = [m.transformed_block_aval.shape for m in grid.block_mappings]
    assert shapes == [(64, 128), (1, 128), (64, 128)]


def test_the_reference_is_the_formula() -> None:
    x, w = matrix(0, 3, 5, BFLOAT16), matrix(1, 1, 5, FLOAT32)[0]
    got = rms_norm_reference(x, w, 0.25)
    assert got.dtype == np.float64
    for i in range(3):
        row = [float(v) for v in x[i]]
        root = math.sqrt(math.fsum(v * v for v in row) / 5 + 0.25)
        want = [v / root * float(s) for v, s in zip(row, w, strict=True)]
        np.testing.assert_allclose(got[i], want, rtol=1e-14)
    np.testing.assert_array_equal(rms_norm_reference(x, w), rms_norm_reference(x, w, 1e-6))


ones, weights = np.ones((16, 256), np.float32), np.ones(256, np.float32)


@pytest.mark.parametrize(
    ("x", "w", "options", "message"),
    [
        (ones[0], weights, {}, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (ones[:0], weights, {}, "a grid over nothing runs no program"),
        (ones.astype(np.int32), weights, {}, "the dtype of x is int32.*float32 and bfloat16"),
        (ones, weights.astype(np.int32), {}, "the dtype of w is int32.*float32 and bfloat16"),
        (ones, weights[:1], {}, r"the shape of w is \(1,\), but each of the 256 columns of x"),
        (ones, weights[None], {}, r"the shape of w is \(1, 256\), but.*: pass shape \(256,\)"),
        (ones, weights, {"eps": 0.0}, "eps is 0.0, but a row of zeros.*: pass 1e-6"),
        (ones, weights, {"eps": math.nan}, "eps is nan, but a row of zeros"),
        (ones, weights, {"bm": 4}, "bm is 4, but a block takes a multiple of 8 of this axis"),
    ],
)
def test_arguments_that_do_not_fit(x: Any, w: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rms_norm(x, w, interpret=True, **options)
