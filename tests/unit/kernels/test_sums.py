"""Row sums and column sums against NumPy in float64, and their refusals."""

import math
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.column_sums import column_sums, column_sums_reference
from pallas_rungs.kernels.row_sums import row_sums, row_sums_reference
from unit.kernels.matrices import BFLOAT16, FLOAT32, GATE, INT32, lengths, matrix, seeds, sizes

BOTH = pytest.mark.parametrize("call", [row_sums, column_sums])


def assert_sums(got: Any, x: np.ndarray, axis: int) -> None:
    """Compares with float64: n numbers summed in float32, or exactly for integers."""
    x64 = x.astype(np.float64)
    want = x64.sum(axis=axis, keepdims=True)
    assert got.shape == want.shape
    assert got.dtype == (np.int32 if x.dtype == INT32 else np.float32)
    n = x.shape[axis]
    bound = 0.0 if x.dtype == INT32 else n * 2.0**-24
    error = np.abs(np.asarray(got, np.float64) - want)
    np.testing.assert_array_less(error, bound * np.abs(x64).sum(axis=axis, keepdims=True) + 1e-30)


@GATE
@given(
    M=lengths,
    N=lengths,
    bm=sizes(8, 320),
    bn=sizes(128, 384),
    dtype=st.sampled_from([FLOAT32, BFLOAT16, INT32]),
    seed=seeds,
)
def test_sums_of_any_shape(M: int, N: int, bm: int, bn: int, dtype: Any, seed: int) -> None:
    x = matrix(seed, M, N, dtype)
    assert_sums(row_sums(x, block=(bm, bn), interpret=True), x, 1)
    assert_sums(column_sums(x, block=(bm, bn), interpret=True), x, 0)


@pytest.mark.parametrize("length", [127, 128, 129, 255, 256, 257])
def test_every_element_counts_once(length: int) -> None:
    ones = np.ones((9, length), np.int32)
    np.testing.assert_array_equal(row_sums(ones, block=(8, 128), interpret=True), length)
    np.testing.assert_array_equal(column_sums(ones.T, block=(128, 128), interpret=True), length)


@pytest.mark.parametrize("length", [7, 8, 9, 15, 16, 17])
def test_every_row_counts_once_in_short_blocks(length: int) -> None:
    ones = np.ones((length, 130), np.float32)
    np.testing.assert_array_equal(column_sums(ones, block=(8, 128), interpret=True), length)
    assert column_sums(ones, block=(8, 128), interpret=True).shape == (1, 130)
    assert row_sums(ones, block=(8, 128), interpret=True).shape == (length, 1)


def test_bfloat16_is_summed_in_float32() -> None:
    ones = np.ones((8, 1024), BFLOAT16)
    np.testing.assert_array_equal(row_sums(ones, block=(8, 128), interpret=True), 1024)
    np.testing.assert_array_equal(column_sums(ones.T, block=(8, 128), interpret=True), 1024)


def test_default_blocks_take_more_than_one_step_of_each_axis() -> None:
    x = matrix(0, 520, 1100, FLOAT32)
    assert_sums(row_sums(x, interpret=True), x, 1)
    assert_sums(column_sums(x, interpret=True), x, 0)


def test_infinities_meet_as_they_do_in_numpy() -> None:
    x = matrix(1, 9, 300, FLOAT32)
    x[2, 3], x[5, [3, 299]] = np.inf, (np.inf, -np.inf)
    got = row_sums(x, block=(8, 128), interpret=True)
    assert got[2, 0] == np.inf
    assert np.isnan(got[5, 0])
    assert np.isfinite(np.delete(got, (2, 5))).all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(row_sums_reference(x)))
    flipped = column_sums(x.T, block=(128, 128), interpret=True)
    np.testing.assert_array_equal(np.isnan(flipped), np.isnan(column_sums_reference(x.T)))


def test_the_references_sum() -> None:
    x = matrix(0, 6, 5, BFLOAT16)
    rows, columns = row_sums_reference(x), column_sums_reference(x)
    assert rows.dtype == columns.dtype == np.float64
    np.testing.assert_allclose(rows[:, 0], [math.fsum(map(float, row)) for row in x], rtol=1e-14)
    np.testing.assert_allclose(
        columns[0], [math.fsum(map(float, column)) for column in x.T], rtol=1e-14
    )


@BOTH
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((8, 8), np.float16), "dtype of x is float16.*float32 and bfloat16 and int32"),
        (np.ones((8,), np.float32), r"the shape of x is \(8,\), but the kernel takes matrices"),
        (np.ones((0, 8), np.float32), "a grid over nothing runs no program"),
    ],
)
def test_arrays_that_do_not_fit(call: Any, x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(x, interpret=True)


@BOTH
@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128), "bm is 4, but a block takes a multiple of 8"),
        ((8, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 384"),
        ((8,), r"block is \(8,\), but the kernel takes \(bm, bn\)"),
    ],
)
def test_blocks_that_no_chip_takes(call: Any, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(np.ones((16, 384), np.float32), block=block, interpret=True)


@pytest.mark.parametrize(
    ("call", "grid"), [(row_sums, (2, 3)), (column_sums, (3, 2))], ids=["rows", "columns"]
)
def test_the_axis_that_is_summed_over_comes_last(call: Any, grid: tuple[int, int]) -> None:
    x = np.ones((16, 384), np.float32)
    (equation,) = jax.make_jaxpr(lambda x: call(x, block=(8, 128)))(x).eqns
    assert equation.params["grid_mapping"].grid == grid
    semantics = equation.params["compiler_params"].dimension_semantics
    assert [str(a).rpartition(".")[2].lower() for a in semantics] == ["parallel", "arbitrary"]


@BOTH
@pytest.mark.parametrize(("size", "masks"), [(256, 0), (300, 1)])
def test_a_mask_is_traced_only_for_a_tail(call: Any, size: int, masks: int) -> None:
    x = np.ones((size, size), np.float32)
    jaxpr = jax.make_jaxpr(lambda x: call(x, block=(128, 128)))(x)
    assert str(jaxpr).count("select_n") == masks
