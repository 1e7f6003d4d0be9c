"""The gather of blocks against NumPy's indexing, and its refusals."""

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.gather_blocks import gather_blocks, gather_blocks_reference
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, INT32, float64, lengths, matrix, seeds


@FEW
@given(
    blocks=st.integers(1, 5),
    bm=st.sampled_from([8, 16, 24]),
    N=lengths,
    dtype=st.sampled_from([FLOAT32, BFLOAT16, INT32]),
    picks=st.lists(st.integers(0, 2**16), min_size=1, max_size=6),
    seed=seeds,
)
def test_each_entry_of_the_table_brings_its_block(
    blocks: int, bm: int, N: int, dtype: Any, picks: list[int], seed: int
) -> None:
    x = matrix(seed, blocks * bm, N, dtype)
    table = np.array(picks, np.int32) % blocks
    got = gather_blocks(table, x, bm=bm, interpret=True)
    assert got.dtype == dtype
    want = np.concatenate([x[t * bm : (t + 1) * bm] for t in table]).astype(np.float64)
    np.testing.assert_array_equal(float64(got), want)
    reference = gather_blocks_reference(table, x, bm=bm)
    assert reference.dtype == np.float64
    np.testing.assert_array_equal(reference, want)


def test_a_block_has_eight_rows_by_default() -> None:
    x = matrix(0, 24, 3, FLOAT32)
    table = np.array([2, 0], np.int32)
    want = x[[*range(16, 24), *range(8)]]
    np.testing.assert_array_equal(gather_blocks(table, x, interpret=True), want)
    np.testing.assert_array_equal(gather_blocks_reference(table, x), want)


def test_a_block_is_cut_down_to_a_short_array() -> None:
    x = matrix(0, 5, 3, FLOAT32)
    table = np.zeros(1, np.int32)
    np.testing.assert_array_equal(gather_blocks(table, x, interpret=True), x)
    np.testing.assert_array_equal(gather_blocks_reference(table, x), x)


def test_the_table_may_be_known_only_when_the_program_runs() -> None:
    x = matrix(0, 32, 128, FLOAT32)
    picked = jax.jit(lambda table: gather_blocks(table, x, interpret=True))
    for table in ([3, 1], [0, 0]):
        want = gather_blocks_reference(np.array(table, np.int32), x)
        np.testing.assert_array_equal(picked(np.array(table, np.int32)), want)


T, X = np.array([0, 1], np.int32), np.ones((16, 128), np.float32)


@pytest.mark.parametrize(
    ("table", "x", "bm", "message"),
    [
        (T.astype(np.float32), X, 8, "the dtype of table is float32.*written for int32"),
        (T[None], X, 8, r"the shape of table is \(1, 2\), but the kernel takes a vector"),
        (T[:0], X, 8, r"the shape of table is \(0,\)"),
        (T, X[0], 8, r"the shape of x is \(128,\), but the kernel takes matrices"),
        (T, X.astype(np.float16), 8, "the dtype of x is float16.*float32 and bfloat16 and int32"),
        (T, X, 4, "bm is 4, but a block takes a multiple of 8"),
        (
            T,
            X[:5],
            8,
            r"rows of x is 5, but the result stacks 2 blocks.*multiple of 8.*with 3 rows",
        ),
        (
            T,
            np.ones((24, 8), np.int32),
            16,
            r"bm is 16.*M = 24 rows would be partial: pad x with 8",
        ),
    ],
)
def test_arguments_that_do_not_fit(table: Any, x: Any, bm: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gather_blocks(table, x, bm=bm, interpret=True)
