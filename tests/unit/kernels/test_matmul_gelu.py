"""The product with a GELU against NumPy in float64, and its refusals."""

import math
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.matmul_gelu import matmul_gelu, matmul_gelu_reference
from unit.kernels.matrices import (
    BFLOAT16,
    FEW,
    FLOAT32,
    RTOL,
    float64,
    lengths,
    matrix,
    seeds,
    sizes,
)


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
def test_gelu_of_the_finished_sum(
    M: int, blocks: int, bk: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    K = blocks * bk
    x = matrix(seed, M, K, dtype)
    y = (matrix(seed + 1, K, N, np.float64) / (100 * math.sqrt(K))).astype(dtype)
    got = matmul_gelu(x, y, block=(bm, bk, bn), interpret=True)
    assert (got.shape, got.dtype) == ((M, N), dtype)
    # The slope of GELU is below 1.13; tanh and its argument add a few roundings of |z|.
    terms = np.abs(float64(x)) @ np.abs(float64(y))
    atol = 1.13 * K * 2.0**-24 * terms + 1e-6 * np.abs(float64(x) @ float64(y)) + 1e-6
    want = matmul_gelu_reference(x, y)
    error = np.abs(float64(got) - want)
    np.testing.assert_array_less(error, atol + (RTOL[dtype] + 1e-6) * np.abs(want))


def test_it_is_the_gelu_of_jax() -> None:
    z = np.linspace(-6, 6, 8 * 128, dtype=np.float32).reshape(8, 128)
    got = matmul_gelu(np.eye(8, dtype=np.float32), z, interpret=True)
    np.testing.assert_allclose(got, jax.nn.gelu(z), rtol=1e-6, atol=1e-6)


def test_far_from_zero_it_is_zero_or_the_identity() -> None:
    z = np.tile(np.array([-1e30, -1e3, -40.0, 0.0, 40.0, 1e3, 1e30, 7.0], np.float32), (8, 1))
    got = matmul_gelu(np.eye(8, dtype=np.float32), z, interpret=True)
    one_rounding_of_tanh = 2.0**-22
    np.testing.assert_allclose(got, np.maximum(z, 0), rtol=one_rounding_of_tanh, atol=0)


def test_a_bfloat16_result_is_rounded_once() -> None:
    # 256 and 256 times 2**-9: a sum kept in bfloat16 would never leave 256.
    K = 1024
    x, y = np.ones((8, K), BFLOAT16), np.full((K, 128), 2.0**-9, BFLOAT16)
    y[0] = 256
    want = np.asarray(256 + (K - 1) * 2.0**-9).astype(BFLOAT16)
    got = matmul_gelu(x, y, block=(8, 128, 128), interpret=True)
    assert want != 256
    np.testing.assert_array_equal(got, np.full((8, 128), want))


def test_the_reference_is_the_formula() -> None:
    x, y = matrix(0, 4, 30, BFLOAT16), (matrix(1, 30, 5, np.float64) / 100).astype(BFLOAT16)
    got = matmul_gelu_reference(x, y)
    assert got.dtype == np.float64
    for i, j in np.ndindex(4, 5):
        z = math.fsum(float(x[i, k]) * float(y[k, j]) for k in range(30))
        inner = math.sqrt(2 / math.pi) * (z + 0.044715 * z * z * z)
        assert got[i, j] == pytest.approx(z / 2 * (1 + math.tanh(inner)), rel=1e-11, abs=1e-11)


x16, y16 = np.ones((16, 256), np.float32), np.ones((256, 384), np.float32)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (x16, y16[:128], r"the shape of y is \(128, 384\).*needs the 256 columns of x"),
        (x16, y16.astype(BFLOAT16), "the dtype of y is bfloat16, but it must be that of x"),
        (x16.astype(np.int32), y16, "the dtype of x is int32.*float32 and bfloat16"),
        (x16, y16.astype(np.float16), "the dtype of y is float16.*float32 and bfloat16"),
        (x16[0], y16, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (x16, y16[:, 0], r"the shape of y is \(256,\), but the kernel takes matrices"),
        (x16[:0], y16, "a grid over nothing runs no program"),
    ],
)
def test_operands_that_do_not_fit(x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matmul_gelu(x, y, interpret=True)


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
        matmul_gelu(x16, y16, block=block, interpret=True)


def test_a_partial_block_of_k_is_refused() -> None:
    x, y = np.ones((8, 768), np.float32), np.ones((768, 128), np.float32)
    with pytest.raises(ValueError, match=r"bk is 512.*512 does not divide K = 768: pass 384, or"):
        matmul_gelu(x, y, interpret=True)
