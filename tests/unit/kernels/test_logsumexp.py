"""Logsumexp over blocks against NumPy in float64, its infinities, and its refusals."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.logsumexp import cases, logsumexp, logsumexp_reference
from unit.kernels.launches import launches
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, float64, lengths, matrix, seeds, sizes


@FEW
@given(
    M=lengths,
    N=st.one_of(lengths, st.integers(300, 700)),
    bm=sizes(128, 384),
    bn=sizes(128, 384),
    offset=st.sampled_from([0.0, 1e4, -1e4]),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_blocks_fold_into_the_whole_row(
    M: int, N: int, bm: int, bn: int, offset: float, dtype: Any, seed: int
) -> None:
    x = (matrix(seed, M, N, np.float32) + np.float32(offset)).astype(dtype)
    got = logsumexp(x, block=(bm, bn), interpret=True)
    assert got.shape == (M,)
    assert got.dtype == np.float32
    np.testing.assert_allclose(float64(got), logsumexp_reference(x), rtol=2.0**-22, atol=2.0**-20)


def test_the_default_block_takes_a_row_in_parts() -> None:
    (x,) = next(case.args for case in cases() if case.name == "one row")
    assert x.shape[1] > 2 * 1024
    np.testing.assert_allclose(
        float64(logsumexp(x, interpret=True)), logsumexp_reference(x), rtol=2.0**-22
    )


def test_blocks_by_default_and_the_reduction_in_order() -> None:
    (launch,) = launches(logsumexp, jnp.zeros((600, 3000)))
    assert launch["grid_mapping"].grid == (3, 3)
    semantics = launch["compiler_params"].dimension_semantics
    assert [str(s) for s in semantics] == ["parallel", "arbitrary"]


@pytest.mark.parametrize("place", [0, 127, 128, 299])
def test_infinities_and_nan_wherever_they_stand(place: int) -> None:
    x = np.zeros((5, 300), np.float32)
    x[0, place] = np.inf
    x[1] = -np.inf
    x[1, place] = 3.0
    x[2] = -np.inf
    x[3] = -np.inf
    x[3, place] = np.inf
    x[4, place] = np.nan
    got = float64(logsumexp(x, block=(128, 128), interpret=True))
    np.testing.assert_array_equal(got, [np.inf, 3.0, -np.inf, np.inf, np.nan])


def test_the_reference_sums_exponentials() -> None:
    x = matrix(0, 4, 30, BFLOAT16) / 10
    want = [math.log(math.fsum(math.exp(float(element)) for element in row)) for row in x]
    got = logsumexp_reference(x)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-13)
    shifted = logsumexp_reference(x.astype(np.float64) + 1e4)
    np.testing.assert_allclose(shifted, np.add(want, 1e4), rtol=1e-13)
    infinite = np.array([[-np.inf, -np.inf], [np.inf, -np.inf], [-np.inf, 2.0]])
    np.testing.assert_array_equal(logsumexp_reference(infinite), [-np.inf, np.inf, 2.0])


x300 = np.ones((300, 300), np.float32)


@pytest.mark.parametrize(
    ("x", "block", "message"),
    [
        (x300[0], (128, 128), "the kernel takes matrices"),
        (x300[:, :0], (128, 128), "a grid over nothing runs no program"),
        (x300.astype(np.int32), (128, 128), "the dtype of x is int32.*float32 and bfloat16"),
        (x300, (64, 128), "bm is 64, but a block takes a multiple of 128 of this axis or all 300"),
        (x300, (128, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 300"),
        (x300, (128,), r"block is \(128,\), but the kernel takes \(bm, bn\)"),
    ],
)
def test_what_is_refused(x: np.ndarray, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logsumexp(x, block=block, interpret=True)
