"""The grouped product against one NumPy product a group, its plan of visits, and its refusals."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.grouped_matmul import (
    grouped_matmul,
    grouped_matmul_reference,
    plan_visits,
)
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, matrix, seeds, sizes

group_sizes = st.lists(st.integers(0, 40), min_size=1, max_size=5)


def stack(seed: int, G: int, K: int, N: int, dtype: Any) -> np.ndarray:
    return matrix(seed, G * K, N, dtype).reshape(G, K, N)


def assert_products(got: Any, x: np.ndarray, w: np.ndarray, groups: np.ndarray) -> None:
    """Compares with the float64 products, to the error of summing K products in float32."""
    assert got.dtype == np.float32
    terms = grouped_matmul_reference(np.abs(x), np.abs(w), groups)
    error = np.abs(np.asarray(got, np.float64) - grouped_matmul_reference(x, w, groups))
    np.testing.assert_array_less(error, x.shape[1] * 2.0**-24 * terms + 1e-30)


@FEW
@given(
    groups=st.lists(st.integers(0, 30), min_size=3, max_size=3),
    M=st.sampled_from([40, 61]),  # few shapes, since each is compiled: more would take long
    blocks=st.integers(1, 2),
    N=st.sampled_from([1, 200]),
    bm=st.sampled_from([8, 24, 64]),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_each_row_meets_the_matrix_of_its_group(
    groups: list[int], M: int, blocks: int, N: int, bm: int, dtype: Any, seed: int
) -> None:
    K = 128 * blocks
    x, w = matrix(seed, M, K, dtype), stack(seed + 1, len(groups), K, N, dtype)
    table = np.array(groups, np.int32)
    got = grouped_matmul(x, w, table, block=(bm, 128, 128), interpret=True)
    assert_products(got, x, w, table)


def test_default_blocks() -> None:
    x, w = matrix(0, 140, 1024, FLOAT32), stack(1, 2, 1024, 520, FLOAT32)
    table = np.array([60, 75], np.int32)
    assert_products(grouped_matmul(x, w, table, interpret=True), x, w, table)


def test_rows_after_the_last_group_are_zero() -> None:
    x, w = matrix(0, 40, 128, FLOAT32), stack(1, 2, 128, 128, FLOAT32)
    for table in ([3, 10], [16, 0], [0, 0]):
        got = grouped_matmul(x, w, np.array(table, np.int32), block=(8, 128, 128), interpret=True)
        assert (np.asarray(got)[sum(table) :] == 0).all()
        assert (np.asarray(got)[: sum(table)] != 0).any(axis=1).all()


def test_rows_past_the_end_are_cut_off() -> None:
    x, w = matrix(0, 20, 128, FLOAT32), stack(1, 3, 128, 128, FLOAT32)
    got = grouped_matmul(x, w, np.array([12, 50, 7], np.int32), block=(8, 128, 128), interpret=True)
    assert_products(got, x, w, np.array([12, 8, 0], np.int32))


def test_an_infinite_row_spoils_no_other() -> None:
    x, w = matrix(0, 16, 128, FLOAT32), stack(1, 2, 128, 128, FLOAT32)
    x[4] = np.inf
    table = np.array([5, 11], np.int32)
    got = np.asarray(grouped_matmul(x, w, table, block=(16, 128, 128), interpret=True))
    assert np.isfinite(np.delete(got, 4, axis=0)).all()


@FEW
@given(groups=group_sizes, over=st.integers(0, 30), bm=sizes(8, 64))
def test_the_plan_visits_every_row_once_for_its_group(
    groups: list[int], over: int, bm: int
) -> None:
    M, G = max(sum(groups) + over, 1), len(groups)
    tile, group, edges = map(np.asarray, plan_visits(np.array(groups, np.int32), M, bm))
    assert tile.dtype == group.dtype == edges.dtype == np.int32
    assert tile.shape == group.shape == (math.ceil(M / bm) + G,)
    np.testing.assert_array_equal(edges, [0, *np.cumsum(groups), M])
    # Visits of a tile follow each other, and so do visits of a group.
    assert (np.diff(tile) >= 0).all()
    assert (np.diff(tile) <= 1).all()
    assert (np.diff(group) >= 0).all()
    assert tile[0] == 0
    assert tile[-1] == math.ceil(M / bm) - 1
    # Every visit that belongs to a group finds rows of it in its tile; together they find all.
    found = {
        (t, g): set(range(max(edges[g], t * bm), min(edges[g + 1], (t + 1) * bm, M)))
        for t, g in zip(tile.tolist(), group.tolist(), strict=True)
    }
    assert all(rows for (_, g), rows in found.items() if g < G)
    real = [(t, g) for t, g in zip(tile.tolist(), group.tolist(), strict=True) if g < G]
    assert len(set(real)) == len(real)
    assert sorted(row for rows in found.values() for row in rows) == list(range(M))


def test_a_plan_by_hand() -> None:
    tile, group, edges = plan_visits(np.array([5, 0, 14, 2], np.int32), 30, 8)
    assert tile.tolist() == [0, 0, 1, 2, 2, 2, 3, 3]
    assert group.tolist() == [0, 2, 2, 2, 3, 4, 4, 4]
    assert edges.tolist() == [0, 5, 5, 19, 21, 30]


def test_the_reference_sums_products() -> None:
    x, w = matrix(0, 5, 30, BFLOAT16), stack(1, 3, 30, 4, BFLOAT16)
    got = grouped_matmul_reference(x, w, np.array([2, 0, 2], np.int32))
    want = [
        [
            math.fsum(float(x[r, k]) * float(w[g, k, j]) for k in range(30)) if g is not None else 0
            for j in range(4)
        ]
        for r, g in enumerate([0, 0, 2, 2, None])
    ]
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-12)


X, W, S = np.ones((16, 256), np.float32), np.ones((2, 256, 384), np.float32), [6, 10]
SIZES = np.array(S, np.int32)


@pytest.mark.parametrize(
    ("x", "w", "groups", "message"),
    [
        (X.astype(np.int32), W, SIZES, "the dtype of x is int32.*float32 and bfloat16"),
        (X[0], W, SIZES, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (X[:0], W, SIZES, "a grid over nothing runs no program"),
        (X, W.astype(BFLOAT16), SIZES, "the dtype of w is bfloat16, but.*written for float32"),
        (X, W[:, :128], SIZES, r"the shape of w is \(2, 128, 384\), but the kernel takes \(G, 256"),
        (X, W[0], SIZES, r"the shape of w is \(256, 384\).*a matrix for each group"),
        (X, W[:, :, :0], SIZES, r"the shape of w is \(2, 256, 0\)"),
        (X, W, SIZES[:1], r"the shape of group_sizes is \(1,\), but w has 2 groups"),
        (X, W, SIZES.astype(np.float32), "the dtype of group_sizes is float32"),
        (X, W, SIZES[None], r"the shape of group_sizes is \(1, 2\), but the kernel takes a vector"),
    ],
)
def test_operands_that_do_not_fit(x: Any, w: Any, groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grouped_matmul(x, w, groups, interpret=True)
