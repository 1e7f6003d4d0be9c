"""The gradient of a softmax against its Jacobian, the rule around it, and the refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from pallas_rungs.kernels.case import BFLOAT16_RTOL
from pallas_rungs.kernels.softmax import softmax, softmax_reference
from pallas_rungs.kernels.softmax_with_gradient import (
    softmax_grad,
    softmax_grad_reference,
    softmax_with_gradient,
    softmax_with_gradient_reference,
)
from unit.kernels.matrices import BFLOAT16, FLOAT32, GATE, float64, lengths, matrix, seeds, sizes

RTOL = {FLOAT32: 1e-5, BFLOAT16: BFLOAT16_RTOL + 1e-5}


@GATE
@given(
    M=lengths,
    N=lengths,
    bm=sizes(8, 320),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_the_gradient_agrees_with_the_formula(
    M: int, N: int, bm: int, dtype: Any, seed: int
) -> None:
    y = softmax_reference(matrix(seed, M, N, FLOAT32)).astype(dtype)
    dy = matrix(seed + 1, M, N, dtype)
    dx = softmax_grad(y, dy, bm=bm, interpret=True)
    assert (dx.shape, dx.dtype) == (y.shape, dtype)
    want = softmax_grad_reference(y, dy)
    # Each of the two terms of the difference is at most max |dy|.
    atol = 1e-5 * np.abs(float64(dy)).max() * float64(y)
    error = np.abs(float64(dx) - want)
    np.testing.assert_array_less(error, RTOL[dtype] * np.abs(want) + atol + 1e-30)


def test_the_reference_is_the_jacobian() -> None:
    y = softmax_reference(matrix(0, 5, 30, FLOAT32) / 10)
    dy = matrix(1, 5, 30, np.float64)
    want = [(np.diag(row) - np.outer(row, row)) @ d for row, d in zip(y, dy, strict=True)]
    got = softmax_grad_reference(y, dy)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-14)
    assert got.dtype == np.float64
    x = matrix(2, 5, 30, BFLOAT16)
    np.testing.assert_array_equal(
        softmax_with_gradient_reference(x),
        softmax_reference(x),
    )


def test_the_gradient_agrees_with_differences_in_both_precisions() -> None:
    x = matrix(2, 9, 30, FLOAT32) / 10
    call = lambda x: softmax_with_gradient(x, bm=8, interpret=True)  # noqa: E731
    check_grads(call, (x,), order=1, modes=["rev"])
    with jax.enable_x64(True):
        wide = np.asarray(x, np.float64)
        check_grads(call, (wide,), order=1, modes=["rev"])
        y = call(wide)
        assert y.dtype == np.float64
        np.testing.assert_allclose(y, softmax_reference(wide), rtol=1e-13)
        got = softmax_grad(y, jnp.asarray(wide), interpret=True)
        want = softmax_grad_reference(np.asarray(y), wide)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


def test_the_gradient_composes_with_jit_and_vmap() -> None:
    x = matrix(3, 3 * 8, 128, FLOAT32).reshape(3, 8, 128)
    target = matrix(4, 8, 128, FLOAT32)
    loss = lambda x: jnp.sum(softmax_with_gradient(x, interpret=True) * target)  # noqa: E731
    want = np.stack([softmax_grad_reference(softmax_reference(item), target) for item in x])
    np.testing.assert_allclose(jax.vmap(jax.grad(loss))(x), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x[0]), want[0], rtol=1e-4, atol=1e-4)


def test_the_result_is_all_that_is_saved() -> None:
    x = matrix(5, 8, 128, FLOAT32)
    y, pullback = jax.vjp(lambda x: softmax_with_gradient(x, interpret=True), x)
    np.testing.assert_array_equal(y, softmax(x, interpret=True))
    (saved,) = [leaf for leaf in jax.tree.leaves(pullback) if np.shape(leaf)]
    np.testing.assert_array_equal(saved, y)


def test_both_kernels_get_the_block_that_was_asked_for() -> None:
    x = jnp.ones((40, 256), jnp.float32)
    call = lambda x: softmax_with_gradient(x, bm=16, interpret=True).sum()  # noqa: E731
    text = str(jax.make_jaxpr(jax.grad(call))(x))
    assert text.count("grid=(3,)") == 2
    assert text.count("interpret=True") == 2
    tall = jnp.ones((65, 8), jnp.float32)
    for text in (
        str(jax.make_jaxpr(softmax_with_gradient)(tall)),
        str(jax.make_jaxpr(softmax_grad)(tall, tall)),
    ):
        assert "grid=(2,)" in text
        assert "interpret=False" in text
        assert "parallel" in text


ones = np.ones((16, 256), np.float32)


@pytest.mark.parametrize(
    ("y", "dy", "bm", "message"),
    [
        (ones[0], ones[0], 8, r"the shape of y is \(256,\), but the kernel takes matrices"),
        (ones.astype(np.int32), ones, 8, "the dtype of y is int32.*float32 and bfloat16"),
        (ones, ones[:8], 8, r"the shape of dy is \(8, 256\), but it must be that of y"),
        (ones, ones.astype(BFLOAT16), 8, "the dtype of dy is bfloat16, but it must be that of y"),
        (ones, ones, 4, "bm is 4, but a block takes a multiple of 8 of this axis or all 16 of it"),
    ],
)
def test_arguments_that_do_not_fit(y: np.ndarray, dy: np.ndarray, bm: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        softmax_grad(y, dy, bm=bm, interpret=True)


def test_float64_is_refused_where_no_interpreter_runs() -> None:
    with jax.enable_x64(True):
        wide = jnp.ones((8, 128), jnp.float64)
        with pytest.raises(ValueError, match="the dtype of x is float64"):
            jax.make_jaxpr(softmax_with_gradient)(wide)
        with pytest.raises(ValueError, match="the dtype of y is float64"):
            jax.make_jaxpr(softmax_grad)(wide, wide)
