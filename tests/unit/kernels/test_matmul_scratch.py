"""The two matmuls with float32 scratch: one rounding, masked tails."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.matmul_masked import matmul_masked, matmul_masked_reference
from pallas_rungs.kernels.matmul_scratch import matmul_scratch
from unit.kernels.launches import launches
from unit.kernels.matrices import (
    BFLOAT16,
    FEW,
    FLOAT32,
    OF_BLOCKS_OF_K,
    assert_product,
    matrix,
    seeds,
    sizes,
)

few_lengths = st.one_of(st.sampled_from([1, 8, 127, 129, 256]), st.integers(1, 300))


@FEW
@given(**OF_BLOCKS_OF_K | {"M": few_lengths, "N": few_lengths})
def test_blocks_of_k_add_up_and_round_once(
    M: int, blocks: int, bk: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = matrix(seed, M, blocks * bk, dtype), matrix(seed + 1, blocks * bk, N, dtype)
    assert_product(matmul_scratch(x, y, block=(bm, bk, bn), interpret=True), x, y, x.dtype)


@FEW
@given(
    M=few_lengths,
    K=few_lengths,
    N=few_lengths,
    bm=sizes(8, 160),
    bk=sizes(128, 256),
    bn=sizes(128, 256),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_no_block_has_to_divide(
    M: int, K: int, N: int, bm: int, bk: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = matrix(seed, M, K, dtype), matrix(seed + 1, K, N, dtype)
    assert_product(matmul_masked(x, y, block=(bm, bk, bn), interpret=True), x, y, x.dtype)


@pytest.mark.parametrize("K", [129, 255, 257, 300])
def test_a_tail_of_k_of_any_length_is_masked_in_both(K: int) -> None:
    x, y = matrix(K, 9, K, FLOAT32), matrix(K + 1, K, 130, FLOAT32)
    assert_product(matmul_masked(x, y, block=(8, 128, 128), interpret=True), x, y, x.dtype)


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
    assert_product(call(x, y, interpret=True), x, y, x.dtype)


def test_a_partial_block_of_k_is_masked_where_others_refuse_it() -> None:
    x, y = np.ones((8, 768), np.float32), np.ones((768, 128), np.float32)
    np.testing.assert_array_equal(matmul_masked(x, y, interpret=True), 768.0)


@pytest.mark.parametrize(("K", "masks"), [(256, 0), (300, 2)])
def test_a_mask_is_traced_only_for_a_tail(K: int, masks: int) -> None:
    jaxpr = jax.make_jaxpr(lambda x, y: matmul_masked(x, y, block=(8, 128, 128)))(
        jnp.zeros((8, K)), jnp.zeros((K, 128))
    )
    assert str(jaxpr).count("select_n") == masks


@pytest.mark.parametrize("call", [matmul_scratch, matmul_masked])
def test_the_call_is_made_as_a_chip_wants_it(call: Any) -> None:
    x, y = jax.ShapeDtypeStruct((16, 256), FLOAT32), jax.ShapeDtypeStruct((256, 384), FLOAT32)
    (launch,) = launches(call, x, y, block=(8, 128, 128))
    assert launch["grid_mapping"].grid == (2, 3, 2)
    semantics = launch["compiler_params"].dimension_semantics
    assert [str(axis).rpartition(".")[2].lower() for axis in semantics] == [
        "parallel",
        "parallel",
        "arbitrary",
    ]
    scratch = launch["jaxpr"].invars[-1].aval
    assert (scratch.shape, scratch.dtype) == ((8, 128), np.float32)
