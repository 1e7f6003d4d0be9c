"""SiLU and its gradient against NumPy in float64, the rule between them, and the refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from pallas_rungs.kernels.case import BFLOAT16_RTOL
from pallas_rungs.kernels.silu import (
    silu,
    silu_grad,
    silu_grad_reference,
    silu_reference,
)
from unit.kernels.matrices import BFLOAT16, FLOAT32, GATE, float64, lengths, matrix, seeds, sizes

RTOL = {FLOAT32: 2e-6, BFLOAT16: BFLOAT16_RTOL}


@GATE
@given(
    M=lengths,
    N=lengths,
    bm=sizes(8, 320),
    bn=sizes(128, 384),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_both_directions_agree_with_the_formula(
    M: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x, dy = matrix(seed, M, N, dtype), matrix(seed + 1, M, N, dtype)
    got = silu(x, block=(bm, bn), interpret=True)
    assert (got.shape, got.dtype) == (x.shape, dtype)
    np.testing.assert_allclose(float64(got), silu_reference(x), rtol=RTOL[dtype], atol=1e-30)

    dx = silu_grad(x, dy, block=(bm, bn), interpret=True)
    assert (dx.shape, dx.dtype) == (x.shape, dtype)
    error = np.abs(float64(dx) - silu_grad_reference(x, dy))
    allowed = RTOL[dtype] * np.abs(silu_grad_reference(x, dy)) + 2e-6 * np.abs(float64(dy))
    np.testing.assert_array_less(error, allowed + 1e-30)


def test_far_from_zero_it_is_x_or_nothing_and_nan_at_minus_infinity() -> None:
    x = np.array([[1e4, -1e4, np.inf, -np.inf, np.nan]], np.float32)
    got = np.asarray(silu(x, interpret=True))
    np.testing.assert_array_equal(got, [[1e4, 0, np.inf, np.nan, np.nan]])
    np.testing.assert_array_equal(silu_reference(x), got)
    dx = silu_grad(x[:, :2], np.full((1, 2), 3, np.float32), interpret=True)
    np.testing.assert_array_equal(dx, [[3, 0]])


def test_the_references_are_the_formula() -> None:
    x, dy = matrix(0, 6, 40, BFLOAT16), matrix(1, 6, 40, BFLOAT16)
    t = float64(x) / 2
    np.testing.assert_allclose(silu_reference(x), t * (1 + np.tanh(t)), rtol=1e-9, atol=1e-13)
    assert silu_reference(x).dtype == np.float64

    h = 1e-5  # a central difference is off by h**2 / 6 times the third derivative
    at = float64(x)
    slope: Any = (silu_reference(at + h) - silu_reference(at - h)) / (2 * h)
    np.testing.assert_allclose(silu_grad_reference(x, dy), float64(dy) * slope, atol=1e-7)
    assert silu_grad_reference(x, dy).dtype == np.float64


def test_the_gradient_agrees_with_differences_in_both_precisions() -> None:
    x = matrix(2, 9, 130, FLOAT32) / 10
    check_grads(lambda x: silu(x, block=(8, 128), interpret=True), (x,), order=1, modes=["rev"])
    with jax.enable_x64(True):
        wide = np.asarray(x, np.float64)
        call = lambda x: silu(x, block=(8, 128), interpret=True)  # noqa: E731
        check_grads(call, (wide,), order=1, modes=["rev"])
        assert silu(wide, interpret=True).dtype == np.float64
        # Fifteen digits: nothing on the way was rounded to float32.
        np.testing.assert_allclose(silu(wide, interpret=True), silu_reference(wide), rtol=1e-14)
        np.testing.assert_allclose(
            silu_grad(wide, wide[::-1], interpret=True),
            silu_grad_reference(wide, wide[::-1]),
            rtol=1e-13,
            atol=1e-15,
        )


def test_the_gradient_composes_with_jit_and_vmap() -> None:
    x = matrix(3, 3 * 8, 128, FLOAT32).reshape(3, 8, 128)
    loss = lambda x: jnp.sum(silu(x, interpret=True) ** 2)  # noqa: E731
    want = np.stack([silu_grad_reference(item, 2 * silu_reference(item)) for item in x])
    np.testing.assert_allclose(jax.vmap(jax.grad(loss))(x), want, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x[0]), want[0], rtol=1e-5, atol=1e-4)
    value, pullback = jax.vjp(lambda x: silu(x, block=(8, 128), interpret=True), x[0])
    np.testing.assert_array_equal(value, silu(x[0], interpret=True))
    np.testing.assert_array_equal(pullback(x[1])[0], silu_grad(x[0], x[1], interpret=True))


def test_both_kernels_get_the_block_that_was_asked_for() -> None:
    x = jnp.ones((40, 256), jnp.float32)
    traced = jax.make_jaxpr(jax.grad(lambda x: silu(x, block=(16, 128), interpret=True).sum()))(x)
    text = str(traced)
    assert text.count("grid=(3, 2)") == 2
    assert text.count("interpret=True") == 2
    default = str(jax.make_jaxpr(silu)(jnp.ones((257, 513), jnp.float32)))
    assert "grid=(2, 2)" in default
    assert "interpret=False" in default
    default = str(jax.make_jaxpr(silu_grad)(*[jnp.ones((257, 513), jnp.float32)] * 2))
    assert "grid=(2, 2)" in default
    assert "interpret=False" in default
    assert "parallel" in default


ones = np.ones((16, 256), np.float32)


@pytest.mark.parametrize(
    ("x", "block", "message"),
    [
        (ones[0], (8, 128), r"the shape of x is \(256,\), but the kernel takes matrices"),
        (ones[:0], (8, 128), "a grid over nothing runs no program"),
        (ones.astype(np.int32), (8, 128), "the dtype of x is int32.*float32 and bfloat16"),
        (ones, (4, 128), "bm is 4, but a block takes a multiple of 8 of this axis or all 16"),
        (ones, (8, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 256"),
        (ones, (8,), r"block is \(8,\), but the kernel takes \(bm, bn\)"),
    ],
)
def test_arguments_that_do_not_fit(x: np.ndarray, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        silu(x, block=block, interpret=True)
    with pytest.raises(ValueError, match=message):
        silu_grad(x, x, block=block, interpret=True)


@pytest.mark.parametrize(
    ("dy", "message"),
    [
        (ones[:8], r"the shape of dy is \(8, 256\), but it must be that of x, \(16, 256\)"),
        (ones.astype(BFLOAT16), "the dtype of dy is bfloat16, but it must be that of x, float32"),
    ],
)
def test_a_cotangent_that_does_not_fit(dy: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        silu_grad(ones, dy, interpret=True)


def test_float64_is_refused_where_no_interpreter_runs() -> None:
    with jax.enable_x64(True):
        wide = jnp.ones((8, 128), jnp.float64)
        for call in (silu, lambda x: silu_grad(x, x)):
            with pytest.raises(ValueError, match="the dtype of x is float64"):
                jax.make_jaxpr(call)(wide)
