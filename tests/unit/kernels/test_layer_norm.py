"""The LayerNorm against NumPy in float64, also where the mean dwarfs the spread."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.layer_norm import layer_norm, layer_norm_reference
from unit.kernels.matrices import (
    BFLOAT16,
    FLOAT32,
    GATE,
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
    offset=st.sampled_from([0.0, -100.0, 1e4]),
    eps=st.sampled_from([1e-5, 1e-3, 1.0]),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    row_dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_rows_are_normalised_scaled_and_shifted(
    M: int, N: int, bm: int, offset: float, eps: float, dtype: Any, row_dtype: Any, seed: int
) -> None:
    x = (matrix(seed, M, N, np.float64) + offset).astype(dtype)
    gamma, beta = matrix(seed + 1, 2, N, row_dtype)
    got = layer_norm(x, gamma, beta, eps=eps, bm=bm, interpret=True)
    assert (got.shape, got.dtype) == (x.shape, dtype)

    want = layer_norm_reference(x, gamma, beta, eps=eps)
    # The float32 mean of a row may be off by this, which moves the row before it is scaled.
    off = N * 2.0**-24 * np.abs(float64(x)).max(axis=1, keepdims=True)
    scale = np.abs(float64(gamma)) / np.sqrt(float64(x).var(axis=1, keepdims=True) + eps)
    atol = 2 * off * scale + 1e-5 * np.abs(float64(beta)) + 1e-6
    error = np.abs(float64(got) - want)
    np.testing.assert_array_less(error, atol + (RTOL[dtype] + 1e-5) * np.abs(want))


def test_a_large_offset_costs_nothing_where_the_mean_is_exact() -> None:
    quarters = np.rint(40 * np.random.default_rng(0).standard_normal((16, 256))) / 4
    plain = np.ones(256, np.float32), np.zeros(256, np.float32)
    near = layer_norm(quarters.astype(np.float32), *plain, interpret=True)
    far = layer_norm((quarters + 1e4).astype(np.float32), *plain, interpret=True)
    np.testing.assert_allclose(far, near, rtol=1e-6, atol=1e-6)


def test_rows_of_one_number_become_beta() -> None:
    gamma, beta = matrix(0, 2, 128, np.float32)
    for value in (0.0, 3.0, -1e30):
        got = layer_norm(np.full((8, 128), value, np.float32), gamma, beta, interpret=True)
        np.testing.assert_array_equal(got, np.broadcast_to(beta, (8, 128)))


def test_a_row_with_an_infinity_is_undefined_and_the_others_are_not() -> None:
    x = matrix(0, 8, 128, np.float32)
    x[3, 7] = np.inf
    rows = np.ones(128, np.float32), np.zeros(128, np.float32)
    got = np.asarray(layer_norm(x, *rows, interpret=True))
    assert np.isnan(got[3]).all()
    assert np.isfinite(np.delete(got, 3, axis=0)).all()


def test_the_reference_is_the_formula() -> None:
    x, gamma, beta = matrix(0, 5, 40, BFLOAT16), *matrix(1, 2, 40, np.float32)
    got = layer_norm_reference(x, gamma, beta, eps=0.5)
    assert got.dtype == np.float64
    for i in range(5):
        row = [float(value) for value in x[i]]
        mean = math.fsum(row) / 40
        variance = math.fsum((value - mean) ** 2 for value in row) / 40
        want = [
            (value - mean) / math.sqrt(variance + 0.5) * float(g) + float(b)
            for value, g, b in zip(row, gamma, beta, strict=True)
        ]
        np.testing.assert_allclose(got[i], want, rtol=1e-12, atol=1e-12)
    default = layer_norm_reference(x, gamma, beta)
    np.testing.assert_array_equal(default, layer_norm_reference(x, gamma, beta, eps=1e-5))


def test_eps_is_1e_5_by_default() -> None:
    x, gamma, beta = 1e-3 * matrix(0, 8, 128, np.float32), *matrix(1, 2, 128, np.float32)
    got = layer_norm(x, gamma, beta, interpret=True)
    np.testing.assert_allclose(got, layer_norm_reference(x, gamma, beta), rtol=1e-4, atol=1e-4)


x16, row = np.ones((16, 256), np.float32), np.ones(256, np.float32)


@pytest.mark.parametrize(
    ("x", "gamma", "beta", "message"),
    [
        (row, row, row, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (x16[:0], row, row, "a grid over nothing runs no program"),
        (x16.astype(np.int32), row, row, "the dtype of x is int32.*float32 and bfloat16"),
        (
            x16,
            row[:1],
            row,
            r"the shape of gamma is \(1,\), but x has 256 columns.*: pass shape \(256,\)\.",
        ),
        (x16, row, row[None], r"the shape of beta is \(1, 256\), but x has 256 columns"),
        (x16, row.astype(np.int32), row, "the dtype of gamma is int32.*float32 and bfloat16"),
        (x16, row, row.astype(np.float16), "the dtype of beta is float16.*float32 and bfloat16"),
    ],
)
def test_operands_that_do_not_fit(x: Any, gamma: Any, beta: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layer_norm(x, gamma, beta, interpret=True)


@pytest.mark.parametrize("eps", [0, -1e-5, math.inf, math.nan, np.ones(1, np.float32), "1e-5"])
def test_eps_that_is_no_positive_number(eps: Any) -> None:
    with pytest.raises(ValueError, match=r"eps is .*, but it is fixed before.*pass a positive"):
        layer_norm(x16, row, row, eps=eps, interpret=True)


def test_blocks_that_no_chip_takes() -> None:
    with pytest.raises(ValueError, match="bm is 4, but a block takes a multiple of 8"):
        layer_norm(x16, row, row, bm=4, interpret=True)
