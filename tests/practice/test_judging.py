"""What the checks of exercises share: every mistake of a reader's function ends in a sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.practice.judging import Hint, agree, close_to, has_nan, run

X = np.arange(8, dtype=np.float32)


def copied(kernel):
    return lambda x: pl.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def twice(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]


def raises(x_ref, o_ref):
    raise AssertionError  # as code inside jax does here and there


def test_kernels_run_without_asking_for_an_interpreter():
    np.testing.assert_array_equal(run(copied(twice), X, call="f(x)"), 2 * X)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, r"f\(x\) returned nothing: return what"),
        (lambda x: jnp.sin(x), r"f\(x\) launched no kernel"),
        (lambda x: x.nonsense, r"f\(x\) raised AttributeError: .*nonsense"),
        (copied(raises), r"f\(x\) raised AssertionError: without a message"),
    ],
)
def test_what_goes_wrong_is_told_with_the_call(function, message):
    with pytest.raises(AssertionError, match=message):
        run(function, X, call="f(x)")


def test_the_first_hint_that_fits_is_told():
    hints = (Hint("nobody wrote it", has_nan), Hint("doubled", close_to(2 * X)))
    agree(X, X, call="f(x)", rtol=0, atol=0, hints=hints)
    with pytest.raises(AssertionError, match=r"(?s)f\(x\): 7 of 8 values differ.*Hint: doubled"):
        agree(2 * X, X, call="f(x)", rtol=0, atol=0, hints=hints)
    with pytest.raises(AssertionError, match="Hint: nobody wrote it"):
        agree(X * np.nan, X, call="f(x)", rtol=0, atol=0, hints=hints)
    with pytest.raises(AssertionError) as told:
        agree(3 * X, X, call="f(x)", rtol=0, atol=0, hints=hints)
    assert "Hint" not in str(told.value)


def test_shape_and_dtype_are_told_before_numbers():
    with pytest.raises(AssertionError, match=r"has dtype float32, and should have float64"):
        agree(X, X, call="f(x)", rtol=0, atol=0, dtype=np.float64)
    with pytest.raises(AssertionError, match=r"f\(x\): .*shape"):
        agree(X[:4], X, call="f(x)", rtol=0, atol=0)
