"""alpha * x + beta against NumPy in float64, the blocks that a vector may have, the refusals."""

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.axpy import axpy, axpy_reference
from unit.kernels.matrices import BFLOAT16, FLOAT32, GATE, RTOL, float64, seeds

BLOCKS = [256, 512, 1024, 2048, 3072, 8192]


@GATE
@given(
    N=st.one_of(st.sampled_from([1, 255, 256, 257, 1024, 3000]), st.integers(1, 5000)),
    block=st.sampled_from(BLOCKS),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_every_element_is_scaled_and_shifted(N: int, block: int, dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (10 * rng.standard_normal(N)).astype(dtype)
    alpha, beta = rng.standard_normal((2, 1)).astype(np.float32)
    got = axpy(x, alpha, beta, block=block, interpret=True)
    assert (got.shape, got.dtype) == ((N,), dtype)
    want = axpy_reference(x, alpha, beta)
    # Two roundings in float32 of numbers no larger than these, and one to the dtype.
    atol = 2.0**-23 * (np.abs(float64(x) * float64(alpha)) + np.abs(float64(beta)))
    error = np.abs(float64(got) - want)
    np.testing.assert_array_less(error, atol + RTOL[dtype] * np.abs(want) + 1e-30)


def test_bfloat16_is_rounded_once() -> None:
    x = np.full(256, 256.0, BFLOAT16)
    # 257 and 258 in float32; 256 * 1.00390625 rounded to bfloat16 first would lose the 1.
    got = axpy(x, np.float32([1.00390625]), np.float32([1.0]), interpret=True)
    np.testing.assert_array_equal(float64(got), 258.0)


def test_the_reference_is_the_formula() -> None:
    x, alpha, beta = np.array([1, 2, 4], BFLOAT16), np.float32([0.1]), np.float32([3.0])
    got = axpy_reference(x, alpha, beta)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, [v * float(alpha[0]) + 3.0 for v in (1, 2, 4)], rtol=1e-15)


def asked(N: int, block: int, dtype: Any) -> None:
    scalars = np.ones(1, np.float32), np.ones(1, np.float32)
    jax.make_jaxpr(lambda x: axpy(x, *scalars, block=block))(np.ones(N, dtype))


@pytest.mark.parametrize(
    ("N", "block", "dtype"),
    [
        (5000, 128, FLOAT32),
        (5000, 256, FLOAT32),
        (5000, 3072, FLOAT32),
        (5000, 4096, FLOAT32),
        (5000, 5000, FLOAT32),
        (5000, 9999, FLOAT32),
        (100, 100, FLOAT32),
        (7, 7, FLOAT32),
        (5000, 256, BFLOAT16),
        (5000, 3072, BFLOAT16),
    ],
)
def test_blocks_of_a_vector_that_a_chip_takes(N: int, block: int, dtype: Any) -> None:
    asked(N, block, dtype)


@pytest.mark.parametrize(
    ("N", "block", "dtype", "message"),
    [
        (1000, 64, FLOAT32, "block is 64.*all 1000.*multiple of 1024.*from 128: pass 128"),
        (5000, 384, FLOAT32, "block is 384.*a power of two from 128: pass 512"),
        (5000, 1536, FLOAT32, "block is 1536.*: pass 2048"),
        (5000, 4999, FLOAT32, "block is 4999.*: pass 5000"),
        (5000, 128, BFLOAT16, "block is 128.*a power of two from 256: pass 256"),
        (5000, 0, FLOAT32, "block is 0, but a block has at least one element"),
        (100, 64, FLOAT32, "block is 64.*all 100 elements.*: pass 100"),
    ],
)
def test_blocks_of_a_vector_that_no_chip_takes(
    N: int, block: int, dtype: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        asked(N, block, dtype)


x, one = np.ones(1000, np.float32), np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("x", "alpha", "beta", "message"),
    [
        (x[None], one, one, r"the shape of x is \(1, 1000\), but the kernel takes vectors"),
        (x[:0], one, one, r"the shape of x is \(0,\), but the kernel takes vectors"),
        (x.astype(np.int32), one, one, "the dtype of x is int32.*float32 and bfloat16"),
        (x, one[0], one, r"the shape of alpha is \(\).*use alpha\.reshape\(1\)"),
        (x, one, x, r"the shape of beta is \(1000,\), but a scalar comes as an array of one"),
        (x, one.astype(BFLOAT16), one, "the dtype of alpha is bfloat16.*written for float32"),
        (x, one, one.astype(np.int32), "the dtype of beta is int32.*written for float32"),
    ],
)
def test_operands_that_do_not_fit(x: Any, alpha: Any, beta: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        axpy(x, alpha, beta, interpret=True)
