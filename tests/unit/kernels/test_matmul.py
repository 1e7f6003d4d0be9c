"""The matrix products against NumPy in float64, and their refusals."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.matmul import matmul, matmul_reference
from pallas_rungs.kernels.matmul_rows_columns import (
    matmul_rows_columns,
    matmul_rows_columns_reference,
)
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, lengths, matrix, seeds, sizes


def assert_product(got: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Compares with the float64 product, to the error of summing K products in float32."""
    assert got.dtype == np.float32
    terms = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64))
    error = np.abs(np.asarray(got, np.float64) - matmul_reference(x, y))
    np.testing.assert_array_less(error, x.shape[1] * 2.0**-24 * terms + 1e-30)


@FEW
@given(
    M=lengths,
    blocks=st.integers(1, 3),
    bk=st.sampled_from([128, 256]),
    N=lengths,
    bm=sizes(8, 320),
    bn=sizes(128, 384),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_blocks_of_k_add_up(
    M: int, blocks: int, bk: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = matrix(seed, M, blocks * bk, dtype), matrix(seed + 1, blocks * bk, N, dtype)
    assert_product(matmul(x, y, block=(bm, bk, bn), interpret=True), x, y)


@FEW
@given(
    M=lengths,
    K=lengths,
    N=lengths,
    bm=sizes(8, 320),
    bn=sizes(128, 384),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_rows_meet_columns(M: int, K: int, N: int, bm: int, bn: int, dtype: Any, seed: int) -> None:
    x, y = matrix(seed, M, K, dtype), matrix(seed + 1, K, N, dtype)
    assert_product(matmul_rows_columns(x, y, block=(bm, bn), interpret=True), x, y)
    assert_product(matmul(x, y, block=(bm, K, bn), interpret=True), x, y)


@pytest.mark.parametrize("reference", [matmul_reference, matmul_rows_columns_reference])
def test_the_references_sum_products(reference: Any) -> None:
    x, y = matrix(0, 4, 30, BFLOAT16), matrix(1, 30, 5, BFLOAT16)
    want = [
        [math.fsum(float(x[i, k]) * float(y[k, j]) for k in range(30)) for j in range(5)]
        for i in range(4)
    ]
    got = reference(x, y)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-12)


x16, y16 = np.ones((16, 256), np.float32), np.ones((256, 384), np.float32)


@pytest.mark.parametrize("call", [matmul, matmul_rows_columns])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (x16, y16[:128], r"the shape of y is \(128, 384\).*needs the 256 columns of x"),
        (x16, y16.astype(np.float16), "the dtype of y is float16"),
        (x16.astype(np.int32), y16, "the dtype of x is int32.*float32 and bfloat16"),
        (x16, y16.astype(BFLOAT16), "the dtype of y is bfloat16, but it must be that of x"),
        (x16[0], y16, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (x16, y16[:, 0], r"the shape of y is \(256,\), but the kernel takes matrices"),
        (x16[:0], y16, "a grid over nothing runs no program"),
    ],
)
def test_operands_that_do_not_fit(call: Any, x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(x, y, interpret=True)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128, 128), "bm is 4, but a block takes a multiple of 8"),
        ((8, 64, 128), "bk is 64, but a block takes a multiple of 128 of this axis or all 256"),
        ((8, 128, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 384"),
        ((8, 128), r"block is \(8, 128\), but the kernel takes \(bm, bk, bn\)"),
    ],
)
def test_blocks_that_no_chip_takes(block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matmul(x16, y16, block=block, interpret=True)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128), "bm is 4, but a block takes a multiple of 8"),
        ((8, 64), "bn is 64, but a block takes a multiple of 128"),
        ((8, 128, 128), r"but the kernel takes \(bm, bn\)"),
    ],
)
def test_blocks_of_rows_and_columns_that_no_chip_takes(block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matmul_rows_columns(x16, y16, block=block, interpret=True)


def test_a_partial_block_of_k_is_refused() -> None:
    x, y = np.ones((8, 768), np.float32), np.ones((768, 128), np.float32)
    with pytest.raises(ValueError, match=r"bk is 512.*512 does not divide K = 768: pass 384, or"):
        matmul(x, y, interpret=True)
    got = matmul(x, y, block=(8, 384, 128), interpret=True)
    np.testing.assert_array_equal(got, 768.0)
