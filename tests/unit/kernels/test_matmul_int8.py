"""The product with int8 weights, the rounding to int8, and their refusals."""

import math
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.matmul_int8 import matmul_int8, matmul_int8_reference, quantise
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, GATE, OF_BLOCKS_OF_K, matrix, seeds


def weights(seed: int, K: int, N: int) -> tuple[np.ndarray, np.ndarray]:
    """Any int8 weights, -128 among them, and scales of different sizes."""
    rng = np.random.default_rng(seed)
    q = rng.integers(-128, 128, (K, N), dtype=np.int8)
    return q, np.exp(rng.standard_normal(N)).astype(np.float32)


def assert_product(got: Any, x: np.ndarray, q: np.ndarray, scale: np.ndarray) -> None:
    """Compares to the error of summing K products in float32, and of one more for the scale."""
    assert got.dtype == np.float32
    terms = matmul_int8_reference(np.abs(x), np.abs(q.astype(np.int32)), scale)
    error = np.abs(np.asarray(got, np.float64) - matmul_int8_reference(x, q, scale))
    np.testing.assert_array_less(error, (x.shape[1] + 1) * 2.0**-24 * terms + 1e-30)


@FEW
@given(**OF_BLOCKS_OF_K)
def test_weights_are_widened_and_scaled(
    M: int, blocks: int, bk: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x = matrix(seed, M, blocks * bk, dtype)
    q, scale = weights(seed + 1, blocks * bk, N)
    got = matmul_int8(x, q, scale, block=(bm, bk, bn), interpret=True)
    assert_product(got, x, q, scale)


def test_default_blocks() -> None:
    x, (q, scale) = matrix(0, 260, 1024, FLOAT32), weights(1, 1024, 520)
    assert_product(matmul_int8(x, q, scale, interpret=True), x, q, scale)


def test_the_reference_sums_products() -> None:
    x, (q, scale) = matrix(0, 4, 30, BFLOAT16), weights(1, 30, 5)
    want = [
        [
            math.fsum(float(x[i, k]) * int(q[k, j]) * float(scale[j]) for k in range(30))
            for j in range(5)
        ]
        for i in range(4)
    ]
    got = matmul_int8_reference(x, q, scale)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-12)


@GATE
@given(
    K=st.integers(1, 40),
    N=st.integers(1, 20),
    exponent=st.integers(-40, 30),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_a_weight_is_off_by_half_a_scale_at_most(
    K: int, N: int, exponent: int, dtype: Any, seed: int
) -> None:
    w = (matrix(seed, K, N, FLOAT32) * 2.0**exponent).astype(dtype)
    q, scale = quantise(w)
    assert (q.dtype, scale.dtype) == (np.int8, np.float32)
    assert (q.shape, scale.shape) == ((K, N), (N,))
    assert np.abs(q.astype(int)).max(axis=0).tolist() == [127] * N  # the whole range is used
    for row, integers in zip(w, q, strict=True):
        for weight, integer, s in zip(row, integers, scale, strict=True):
            exact = Fraction(float(weight)) - int(integer) * Fraction(float(s))
            assert 2 * abs(exact) <= Fraction(float(s))


def test_a_tie_goes_to_the_even_integer() -> None:
    w = np.array([[127.0], [2.5], [-3.5], [0.49], [-127.0]], np.float32)
    q, scale = quantise(w)
    assert scale.tolist() == [1.0]
    assert q[:, 0].tolist() == [127, 2, -4, 0, -127]


def test_a_quotient_next_to_a_half_is_not_rounded_to_it_first() -> None:
    w = np.array([[1.673656940460205], [-0.7577580213546753]], np.float32)
    q, scale = quantise(w)
    assert -57.5 < float(w[1, 0]) / float(scale[0]) < -57.4999
    assert (w[1] / scale).item() == -57.5  # in float32, from where it would go on to -58
    assert q[:, 0].tolist() == [127, -57]


def test_columns_of_nothing_and_of_next_to_nothing() -> None:
    w = np.array([[0.0, 1e-44, 254.0], [0.0, 0.0, 2.0]], np.float32)
    q, scale = quantise(w)
    assert q.tolist() == [[0, 0, 127], [0, 0, 1]]
    assert (scale > 0).all()
    np.testing.assert_array_equal(scale[:2], np.finfo(np.float32).tiny)
    assert (2 * np.abs(w - q * scale.astype(np.float64)) <= scale).all()


def test_bfloat16_holds_every_int8() -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    np.testing.assert_array_equal(jax.numpy.asarray(every).astype(BFLOAT16).astype(int), every)


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (np.ones(3, np.float32), r"the shape of w is \(3,\), but the kernel takes matrices"),
        (np.ones((3, 3)), "the dtype of w is float64.*float32 and bfloat16"),
        (np.array([[1, np.nan]], np.float32), "an element of w is nan, but a scale covers finite"),
        (np.array([[np.inf, 1]], np.float32), "an element of w is inf"),
    ],
)
def test_weights_that_cannot_be_rounded(w: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quantise(w)


X, Q, S = np.ones((16, 256), np.float32), np.ones((256, 384), np.int8), np.ones(384, np.float32)


@pytest.mark.parametrize(
    ("x", "q", "scale", "message"),
    [
        (X.astype(np.int8), Q, S, "the dtype of x is int8.*float32 and bfloat16"),
        (X[0], Q, S, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (X, Q.astype(np.float32), S, "the dtype of q is float32.*written for int8"),
        (X, Q[0], S, r"the shape of q is \(384,\), but the kernel takes matrices"),
        (X, Q[:128], S, r"the shape of q is \(128, 384\).*needs the 256 columns of x"),
        (X, Q, S.astype(BFLOAT16), "the dtype of scale is bfloat16"),
        (X, Q, S[None], r"the shape of scale is \(1, 384\), but each of the 384 columns"),
        (X, Q, S[:1], r"pass an array of shape \(384,\)"),
        (X[:0], Q, S, "a grid over nothing runs no program"),
    ],
)
def test_operands_that_do_not_fit(x: Any, q: Any, scale: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matmul_int8(x, q, scale, interpret=True)
