"""The two matmuls with float32 scratch: one rounding, masked tails, refusals."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.case import BFLOAT16_RTOL
from pallas_rungs.kernels.matmul_masked import matmul_masked, matmul_masked_reference
from pallas_rungs.kernels.matmul_scratch import matmul_scratch, matmul_scratch_reference
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, matrix, seeds, sizes

lengths = st.one_of(st.sampled_from([1, 8, 127, 129, 256]), st.integers(1, 300))
dtypes = st.sampled_from([FLOAT32, BFLOAT16])


def assert_product(got: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Compares with the float64 product: K products summed in float32, then one rounding."""
    assert got.dtype == x.dtype
    want = matmul_scratch_reference(x, y)
    assert got.shape == want.shape
    terms = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64))
    summed = x.shape[1] * 2.0**-24 * terms
    once = BFLOAT16_RTOL * (np.abs(want) + summed) if x.dtype == BFLOAT16 else 0.0
    error = np.abs(np.asarray(got).astype(np.float64) - want)
    np.testing.assert_array_less(error, summed + once + 1e-30)


@FEW
@given(
    M=lengths,
    blocks=st.integers(1, 3),
    bk=st.sampled_from([128, 256]),
    N=lengths,
    bm=sizes(8, 320),
    bn=sizes(128, 384),
    dtype=dtypes,
    seed=seeds,
)
def test_blocks_of_k_add_up_and_round_once(
    M: int, blocks: int, bk: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = matrix(seed, M, blocks * bk, dtype), matrix(seed + 1, blocks * bk, N, dtype)
    assert_product(matmul_scratch(x, y, block=(bm, bk, bn), interpret=True), x, y)


@FEW
@given(
    M=lengths,
    K=lengths,
    N=lengths,
    bm=sizes(8, 160),
    bk=sizes(128, 256),
    bn=sizes(128, 256),
    dtype=dtypes,
    seed=seeds,
)
def test_no_block_has_to_divide(
    M: int, K: int, N: int, bm: int, bk: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = matrix(seed, M, K, dtype), matrix(seed + 1, K, N, dtype)
    assert_product(matmul_masked(x, y, block=(bm, bk, bn), interpret=True), x, y)


@pytest.mark.parametrize("K", [129, 255, 257, 300])
def test_a_tail_of_k_of_any_length_is_masked_in_both(K: int) -> None:
    x, y = matrix(K, 9, K, FLOAT32), matrix(K + 1, K, 130, FLOAT32)
    assert_product(matmul_masked(x, y, block=(8, 128, 128), interpret=True), x, y)


def test_the_first_product_after_the_end_of_k_is_not_added() -> None:
    # As many ones as products, so that one too many or too few is a whole number.
    for K in (127, 128, 129, 255, 256, 257):
        ones = np.ones((8, K), np.float32), np.ones((K, 128), np.float32)
        got = matmul_masked(*ones, block=(8, 128, 128), interpret=True)
        np.testing.assert_array_equal(got, K)


@pytest.mark.parametrize("call", [matmul_scratch, matmul_masked])
def test_a_bfloat16_sum_does_not_stall(call: Any) -> None:
    x, y = np.ones((8, 1024), BFLOAT16), np.zeros((1024, 128), BFLOAT16)
    y[:128], y[128::128] = 2, 1  # 256 first, then seven ones, one a block
    got = call(x, y, block=(8, 128, 128), interpret=True)
    # In bfloat16 256 + 1 is 256 again. 263 is summed exactly, and rounded once, to 264.
    np.testing.assert_array_equal(got.astype(np.float32), 264.0)


def test_infinities_stay_in_their_row_and_column() -> None:
    x, y = matrix(0, 16, 300, FLOAT32), matrix(1, 300, 130, FLOAT32)
    x[3, 5], y[299, 7] = np.inf, -np.inf
    got = np.asarray(matmul_masked(x, y, block=(8, 128, 128), interpret=True))
    finite = np.isfinite(got)
    assert not finite[3].any()
    assert not finite[:, 7].any()
    assert np.delete(np.delete(finite, 3, 0), 7, 1).all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(matmul_masked_reference(x, y)))


@pytest.mark.parametrize("call", [matmul_scratch, matmul_masked])
def test_default_blocks_take_more_than_one_step_of_each_axis(call: Any) -> None:
    x, y = matrix(2, 264, 1024, FLOAT32), matrix(3, 1024, 260, FLOAT32)
    assert_product(call(x, y, interpret=True), x, y)


@pytest.mark.parametrize("reference", [matmul_scratch_reference, matmul_masked_reference])
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


@pytest.mark.parametrize("call", [matmul_scratch, matmul_masked])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (x16, y16[:128], r"the shape of y is \(128, 384\).*needs the 256 columns of x"),
        (x16.astype(np.int32), y16, "the dtype of x is int32.*float32 and bfloat16"),
        (x16, y16.astype(np.float16), "the dtype of y is float16"),
        (x16, y16.astype(BFLOAT16), "the dtype of y is bfloat16, but it must be that of x"),
        (x16[0], y16, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (x16, y16[:, 0], r"the shape of y is \(256,\), but the kernel takes matrices"),
        (x16[:0], y16, "the shape of x.*a grid over nothing runs no program"),
        (x16, y16[:, :0], "the shape of y.*a grid over nothing runs no program"),
    ],
)
def test_operands_that_do_not_fit(call: Any, x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(x, y, interpret=True)


@pytest.mark.parametrize("call", [matmul_scratch, matmul_masked])
@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128, 128), "bm is 4, but a block takes a multiple of 8"),
        ((8, 64, 128), "bk is 64, but a block takes a multiple of 128 of this axis or all 256"),
        ((8, 128, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 384"),
        ((8, 128), r"block is \(8, 128\), but the kernel takes \(bm, bk, bn\)"),
    ],
)
def test_blocks_that_no_chip_takes(call: Any, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(x16, y16, block=block, interpret=True)


def test_a_partial_block_of_k_is_refused_where_it_is_not_masked() -> None:
    x, y = np.ones((8, 768), np.float32), np.ones((768, 128), np.float32)
    with pytest.raises(ValueError, match=r"bk is 512.*512 does not divide K = 768: pass 384, or"):
        matmul_scratch(x, y, interpret=True)
    np.testing.assert_array_equal(matmul_masked(x, y, interpret=True), 768.0)


@pytest.mark.parametrize(("K", "masks"), [(256, 0), (300, 2)])
def test_a_mask_is_traced_only_for_a_tail(K: int, masks: int) -> None:
    jaxpr = jax.make_jaxpr(lambda x, y: matmul_masked(x, y, block=(8, 128, 128)))(
        jnp.zeros((8, K)), jnp.zeros((K, 128))
    )
    assert str(jaxpr).count("select_n") == masks


@pytest.mark.parametrize("call", [matmul_scratch, matmul_masked])
def test_the_call_is_made_as_a_chip_wants_it(call: Any) -> None:
    (equation,) = jax.make_jaxpr(lambda x, y: call(x, y, block=(8, 128, 128)))(x16, y16).eqns
    assert equation.params["grid_mapping"].grid == (2, 3, 2)
    semantics = equation.params["compiler_params"].dimension_semantics
    assert [str(axis).rpartition(".")[2].lower() for axis in semantics] == [
        "parallel",
        "parallel",
        "arbitrary",
    ]
    scratch = equation.params["jaxpr"].invars[-1].aval
    assert (scratch.shape, scratch.dtype) == ((8, 128), np.float32)
