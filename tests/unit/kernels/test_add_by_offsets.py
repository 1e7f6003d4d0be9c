"""Addition by explicit offsets against NumPy in float64, and its refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.add_by_offsets import add_by_offsets, add_by_offsets_reference
from unit.kernels.matrices import FLOAT32, GATE, matrix, seeds


@GATE
@given(programs=st.integers(1, 64), seed=seeds)
def test_every_program_adds_its_four(programs: int, seed: int) -> None:
    x, y = matrix(seed, 2, 4 * programs, FLOAT32)
    got = add_by_offsets(x, y, interpret=True)
    np.testing.assert_allclose(got, add_by_offsets_reference(x, y), rtol=1e-6, atol=1e-6)


def test_the_reference_is_float64_addition() -> None:
    x, y = matrix(0, 2, 40, FLOAT32)
    want = x.astype(np.float64) + y.astype(np.float64)
    assert add_by_offsets_reference(x, y).dtype == np.float64
    np.testing.assert_array_equal(add_by_offsets_reference(x, y), want)


ones = np.ones(16, np.float32)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (ones[:15], ones[:15], r"the shape of x is \(15,\).*multiple of 4"),
        (ones[:0], ones[:0], r"the shape of x is \(0,\).*multiple of 4"),
        (ones.reshape(4, 4), ones.reshape(4, 4), r"the shape of x is \(4, 4\).*a vector"),
        (ones, ones[:12], r"the shape of y is \(12,\), but it must be that of x, \(16,\)"),
        (ones.astype(np.float64), ones, "the dtype of x is float64"),
        (ones, ones.astype(np.int32), "the dtype of y is int32"),
    ],
)
def test_operands_that_do_not_fit(x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        add_by_offsets(x, y, interpret=True)
