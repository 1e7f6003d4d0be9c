"""The bounds: reached by inputs made for it, never passed by right code, passed by wrong code."""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pallas_rungs.bounds import (
    EXP_ROUNDINGS,
    RSQRT_ROUNDINGS,
    assert_within,
    dot_bound,
    gamma,
    rms_norm_bound,
    significant_bits,
    smallest_normal,
    softmax_bound,
    stored,
    unit_roundoff,
    variance_bound,
    worst_ratio,
)

MANY = settings(max_examples=60, deadline=None, derandomize=True, database=None)
FLOAT32, BFLOAT16 = np.dtype(np.float32), jnp.dtype(jnp.bfloat16)
U = 2.0**-24
seeds = st.integers(0, 2**32 - 1)


# Rounding


@pytest.mark.parametrize(
    ("dtype", "bits"), [(np.float64, 53), (FLOAT32, 24), (np.float16, 11), (BFLOAT16, 8)]
)
def test_the_unit_roundoff_is_half_the_spacing_above_one(dtype: Any, bits: int) -> None:
    assert significant_bits(dtype) == bits
    assert 2 * unit_roundoff(dtype) == float(jnp.finfo(dtype).eps) == 2.0 ** (1 - bits)


def test_the_smallest_normal_number_is_where_bits_get_lost() -> None:
    assert smallest_normal(FLOAT32) == smallest_normal(BFLOAT16) == 2.0**-126
    assert smallest_normal(np.float16) == 2.0**-14


@pytest.mark.parametrize("dtype", [FLOAT32, np.float16, BFLOAT16])
def test_rounding_comes_close_to_its_bound_and_never_passes_it(dtype: Any) -> None:
    exact = np.random.default_rng(0).uniform(1, 2, 200_000)
    u = unit_roundoff(dtype)
    ratio = worst_ratio(exact.astype(dtype), exact, stored(0 * exact, exact, dtype, held=float))
    assert 0.98 < ratio <= 1
    tie = np.array([1 + u])
    assert worst_ratio(tie.astype(dtype), tie, stored([0.0], tie, dtype, held=float)) > 0.99 - u


def test_storing_where_it_fits_costs_nothing() -> None:
    np.testing.assert_array_equal(stored([0.5], [8.0], FLOAT32), [0.5])
    np.testing.assert_array_equal(stored([0.5], [8.0], BFLOAT16, held=BFLOAT16), [0.5])
    np.testing.assert_array_equal(stored([0.5], [-8.0], BFLOAT16), [0.5 + 2.0**-8 * 8.5])
    np.testing.assert_array_equal(stored([0.5], [8.0], FLOAT32, held=float), [0.5 + U * 8.5])


def test_what_storing_may_flush_to_zero_is_allowed_for() -> None:
    least = 2.0**-14
    small = np.array([0.9 * least, 1.1 * least])
    bound = stored([0.0, 0.0], small, np.float16)
    np.testing.assert_allclose(bound, [least + 2.0**-11 * small[0], 2.0**-11 * small[1]])


def test_gamma_counts_roundings() -> None:
    assert gamma(0) == 0
    assert gamma(1) == U / (1 - U)
    assert gamma(64, BFLOAT16) == 0.25 / 0.75
    np.testing.assert_allclose(gamma([1.5, 3]), [1.5 * U, 3 * U], rtol=1e-6)
    for n in (2, 5, 100):  # the definition: what n factors of 1 - u leave, by reciprocal
        assert gamma(n) >= float((1 - Fraction(1, 2**24)) ** -n - 1)


@pytest.mark.parametrize(("n", "dtype"), [(256, BFLOAT16), (2**24, FLOAT32), (-1, FLOAT32)])
def test_gamma_says_when_it_knows_nothing(n: int, dtype: Any) -> None:
    with pytest.raises(ValueError, match=rf"n is {n}, .* roundings to {np.dtype(dtype).name}"):
        gamma(n, dtype)


# Dot products


def summed(terms: np.ndarray, rng: np.random.Generator) -> np.float32:
    """Sums float32 numbers in a random order: two of them at a time, any two."""
    left = [np.float32(term) for term in terms]
    while len(left) > 1:
        one = left.pop(rng.integers(len(left)))
        other = left.pop(rng.integers(len(left)))
        left.append(np.float32(one + other))
    return left[0]


@MANY
@given(
    K=st.integers(1, 60),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    offset=st.sampled_from([0.0, 3.0]),
    scale=st.sampled_from([1.0, 1e-18, 1e15]),
    seed=seeds,
)
def test_every_order_stays_within_the_bound(
    K: int, dtype: Any, offset: float, scale: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = (scale * (offset + rng.standard_normal((1, K)))).astype(dtype)
    y = (scale * rng.standard_normal((K, 1))).astype(dtype)
    got = summed(x[0].astype(np.float32) * y[:, 0].astype(np.float32), rng)
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x[0], y[:, 0], strict=True))
    assert abs(Fraction(float(got)) - exact) <= Fraction(float(dot_bound(x, y)[0, 0]))


def test_the_bound_of_a_dot_product_is_reached() -> None:
    # Each of the K - 1 small terms is half a spacing of 1: added to 1 one by one, all are lost.
    x = np.full((1, 1000), U, np.float32)
    x[0, 0] = 1
    y = np.ones((1000, 1), np.float32)
    got = np.float32(0)
    for term in x[0]:
        got = np.float32(got + term)
    assert got == 1
    assert 0.998 < worst_ratio([[got]], x.astype(float) @ y, dot_bound(x, y)) <= 1
    # By blocks of ten: the 99 sums of the later blocks are not lost, so far less is allowed.
    assert worst_ratio([[got]], x.astype(float) @ y, dot_bound(x, y, bk=10)) > 9


def test_the_part_of_the_blocks_is_reached_too() -> None:
    # One small term in each block but the first: 99 additions of block sums lose 99 terms.
    x = np.zeros((1, 400), np.float32)
    x[0, ::4] = U
    x[0, 0] = 1
    y = np.ones((400, 1), np.float32)
    got = np.float32(0)
    for block in x.reshape(100, 4):
        got = np.float32(got + block.sum())
    assert got == 1
    assert 0.95 < worst_ratio([[got]], x.astype(float) @ y, dot_bound(x, y, bk=4)) <= 1


@pytest.mark.parametrize(
    ("K", "bk", "dtype", "roundings"),
    [
        (1, None, FLOAT32, 1),
        (1, None, BFLOAT16, 0),  # the product of two bfloat16 numbers fits in float32
        (10, None, FLOAT32, 10),
        (10, None, BFLOAT16, 9),
        (1024, 128, FLOAT32, 128 + 7),
        (1024, 128, BFLOAT16, 127 + 7),
        (100, 30, FLOAT32, 30 + 3),  # the last block is shorter
        (100, 512, FLOAT32, 100),
    ],
)
def test_roundings_of_a_dot_product(K: int, bk: Any, dtype: Any, roundings: int) -> None:
    x, y = -2 * np.ones((2, K), dtype), np.ones((K, 3), dtype)
    want = np.full((2, 3), gamma(roundings) * 2 * K)
    np.testing.assert_allclose(dot_bound(x, y, bk=bk), want, rtol=1e-6, atol=1e-12 * K)


def test_a_result_and_an_accumulator_of_bfloat16_cost_what_they_cost() -> None:
    x, y = np.ones((1, 64), BFLOAT16), -np.ones((64, 1), BFLOAT16)
    into = dot_bound(x, y, dtype=BFLOAT16)
    np.testing.assert_allclose(into, [[64 * (2.0**-8 + gamma(63) * (1 + 2.0**-8))]], rtol=1e-8)
    np.testing.assert_allclose(
        dot_bound(x, y, accumulator=BFLOAT16), [[64 * gamma(64, BFLOAT16)]], rtol=1e-8
    )


def test_products_that_are_flushed_to_zero_are_allowed_for() -> None:
    x, y = np.full((1, 8), 1e-30, np.float32), np.full((8, 1), 9e-9, np.float32)
    assert worst_ratio([[0.0]], x.astype(float) @ y.astype(float), dot_bound(x, y)) < 1
    assert dot_bound(x, y)[0, 0] < 1e-36


# Softmax, RMSNorm, variance


def normal(seed: int, N: int, scale: float, offset: float = 0.0, dtype: Any = FLOAT32) -> Any:
    x = offset + scale * np.random.default_rng(seed).standard_normal((64, N))
    return x.astype(dtype)


def softmax32(x: Any) -> Any:
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


def softmax64(x: Any) -> Any:
    e = np.exp(x.astype(float) - x.astype(float).max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("N", [1, 2, 3, 100])
@pytest.mark.parametrize(("scale", "offset"), [(1, 0), (30, 0), (300, 0), (3, 1e4)])
def test_softmax_stays_within_its_bound(N: int, scale: float, offset: float) -> None:
    x = normal(0, N, scale, offset)
    got = jax.jit(softmax32)(x)
    assert_within(got, softmax64(x), softmax_bound(x))
    x16 = x.astype(BFLOAT16)
    got = jax.jit(softmax32)(x16.astype(np.float32)).astype(BFLOAT16)
    assert_within(got, softmax64(x16), softmax_bound(x16))


def test_softmax_far_below_the_maximum_needs_the_part_of_the_exponent() -> None:
    x = np.zeros((4000, 2), np.float32)
    x[:, 1] = -np.random.default_rng(0).uniform(60, 80, 4000)
    x[:, 0] = np.random.default_rng(1).uniform(0, 1, 4000)
    got, want = np.asarray(jax.jit(softmax32)(x)), softmax64(x)
    assert worst_ratio(got, want, gamma(20) * want) > 1
    assert 0.5 < worst_ratio(got, want, softmax_bound(x)) <= 1


def test_softmax_allows_for_infinities_and_for_what_is_flushed() -> None:
    x = np.array([[0, -np.inf, -95.0], [-np.inf, 3, 3], [1e30, -1e30, 0]], np.float32)
    bound = softmax_bound(x)
    assert np.isfinite(bound).all()
    got = [[1, 0, 0], [0, 0.5, 0.5], [1, 0, 0]]
    assert_within(got, softmax64(x), bound)
    assert (bound < 1e-5).all()


def test_softmax_in_bfloat16_pays_for_the_store() -> None:
    x = normal(0, 16, 3, dtype=BFLOAT16)
    single = softmax_bound(x.astype(np.float32))
    np.testing.assert_array_equal(softmax_bound(x), stored(single, softmax64(x), BFLOAT16))


def rms_norm32(x: Any, w: Any, eps: float) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + eps) * w


@pytest.mark.parametrize("N", [1, 2, 3, 100])
@pytest.mark.parametrize(("scale", "eps"), [(1, 1e-6), (1e-3, 1e-6), (1e15, 1e-6), (1, 1.0)])
def test_rms_norm_stays_within_its_bound(N: int, scale: float, eps: float) -> None:
    x, w = normal(0, N, scale), normal(1, N, 1)[0]
    x64 = x.astype(float)
    want = x64 / np.sqrt((x64**2).mean(axis=1, keepdims=True) + eps) * w.astype(float)
    got = jax.jit(rms_norm32, static_argnums=2)(x, w, eps)
    bound = rms_norm_bound(x, w, eps)
    assert_within(got, want, bound)
    np.testing.assert_allclose(bound, ((N + 3) / 2 + 6) * U * np.abs(want), rtol=1e-5)
    assert worst_ratio(want * (1 + (N + 20) * U), want, bound) > 1
    twice = rms_norm_bound(x.astype(BFLOAT16), w, eps)
    assert (twice > np.abs(want) * 2.0**-9).all()


def variance32(x: Any, passes: int) -> Any:
    mean = jnp.mean(x, axis=1, keepdims=True)
    if passes == 1:
        return jnp.mean(x * x, axis=1) - mean[:, 0] ** 2
    return jnp.mean((x - mean) ** 2, axis=1)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("N", [1, 2, 3, 100, 256])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e4, 1e6])
def test_variances_stay_within_their_bounds(passes: int, N: int, offset: float) -> None:
    x = normal(0, N, 1, offset)
    got = jax.jit(variance32, static_argnums=1)(x, passes)
    assert_within(got, x.astype(float).var(axis=1), variance_bound(x, passes=passes))


def test_the_bound_of_two_passes_tells_them_from_one() -> None:
    x = normal(0, 256, 1, 1e3)
    want = x.astype(float).var(axis=1)
    assert worst_ratio(variance32(x, 1), want, variance_bound(x, passes=2)) > 100
    np.testing.assert_allclose(  # by hand, where the mean is all: 3 N + 7 roundings of its square
        variance_bound(np.full((1, 8), 3.0, np.float32), passes=1), 9 * U * (10 + 19), rtol=1e-5
    )
    np.testing.assert_allclose(
        variance_bound(np.array([[-1.0, 1.0] * 4], np.float32), passes=2), 12 * U, rtol=1e-5
    )
    with pytest.raises(ValueError, match="passes is 3, but a variance takes 1 or 2"):
        variance_bound(x, passes=3)


def test_exp_and_rsqrt_are_as_good_as_assumed() -> None:
    rng = np.random.default_rng(0)
    x = -np.concatenate([rng.uniform(0, 87, 400_000), 10 ** rng.uniform(-8, 1.9, 400_000)])
    x = x.astype(np.float32)
    want = np.exp(x.astype(float))
    assert worst_ratio(jax.jit(jnp.exp)(x), want, EXP_ROUNDINGS * U * want) < 1
    x = (10 ** rng.uniform(-30, 30, 800_000)).astype(np.float32)
    want = x.astype(float) ** -0.5
    assert worst_ratio(jax.jit(jax.lax.rsqrt)(x), want, RSQRT_ROUNDINGS * U * want) < 1


# Judging


def test_the_worst_ratio_counts_errors_in_bounds() -> None:
    assert worst_ratio([1.0, 2.5], [1.0, 2.0], [0.0, 1.0]) == 0.5
    assert worst_ratio([1.0], [2.0], [0.0]) == np.inf
    assert worst_ratio([np.nan], [2.0], [1.0]) == np.inf
    assert worst_ratio([np.inf, 0.0], [2.0, 0.0], [1.0, 1.0]) == np.inf
    assert worst_ratio([np.inf, np.nan], [np.inf, np.nan], [1.0, np.nan]) == 0
    assert worst_ratio(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3))) == 0
    assert worst_ratio(np.array([1.5], BFLOAT16), [1.0], [0.25]) == 2


@pytest.mark.parametrize("shape", [(3, 2), (2,), (1, 2)])
def test_shapes_must_agree(shape: tuple[int, ...]) -> None:
    same = np.zeros((2, 2))
    for arrays in ((np.zeros(shape), same, same), (same, same, np.zeros(shape))):
        with pytest.raises(ValueError, match="each element has a bound of its own"):
            worst_ratio(*arrays)


def test_what_is_outside_is_named() -> None:
    assert_within([1.0, 2.0], [1.0, 2.25], [0.0, 0.25])
    want, bound = np.array([[1.0, 2.0], [3.0, 4.0]]), np.full((2, 2), 0.5)
    got = np.array([[1.0, 2.75], [6.0, 4.25]])
    with pytest.raises(
        AssertionError,
        match=r"2 of 4 elements are outside their bounds; the worst, at \(1, 0\), is 6 where 3 is "
        r"right to within 0.5: 6 times the bound",
    ):
        assert_within(got, want, bound)
    with pytest.raises(AssertionError, match=r"1 of 2 elements .* at \(1\), is nan"):
        assert_within([1.0, np.nan], [1.0, 1.0], [1.0, 1.0])
