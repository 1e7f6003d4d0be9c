"""How far a right result may be from the exact one: bounds that are derived, and never tuned.

The standard model of rounding: an operation on floating-point numbers returns the exact result
times ``1 + d`` with ``|d| <= u``, the unit roundoff. A number that has been through n roundings
carries a product of n such factors, and that product lies within ``gamma(n) = n u / (1 - n u)``
of 1. So a bound is found by counting roundings.

All bounds hold for every order in which a sum may be taken, and with fused multiply-adds, which
round less often. They assume that nothing overflows and that no input is a subnormal number. A
result below the smallest normal number may be flushed to zero, as XLA does on a CPU and a TPU does;
a term of the size of that number allows for it.

Exponential and reciprocal root are no operations of that model. How often a correctly rounded
operation would have to round to be as far off as they are is an assumption, `EXP_ROUNDINGS` and
`RSQRT_ROUNDINGS`, which a test samples on the CPU.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, np.dtype[np.float64]]

EXP_ROUNDINGS = 4
"""Unit roundoffs by which exp may be off: an assumption about the library, checked on samples."""

RSQRT_ROUNDINGS = 4
"""Unit roundoffs by which rsqrt may be off: an assumption about the library, checked on samples."""

DIVISION_ROUNDINGS = 2
"""Roundings of a division: two, as a compiler may multiply by a rounded reciprocal instead."""


def significant_bits(dtype: Any) -> int:
    """Return the bits of a significand, the leading one included: 24 for float32, 8 for bfloat16.

    Args:
        dtype: A floating-point dtype.
    """
    finfo: Any = jnp.finfo
    return int(finfo(dtype).nmant) + 1


def unit_roundoff(dtype: Any) -> float:
    """Return half the spacing of the dtype's numbers just above 1.

    It is the largest relative error of rounding a number to the nearest one: 2**-24 for float32,
    2**-8 for bfloat16.

    Args:
        dtype: A floating-point dtype.
    """
    return 2.0 ** -significant_bits(dtype)


def smallest_normal(dtype: Any) -> float:
    """Return the smallest positive number of a dtype that has all its significant bits."""
    finfo: Any = jnp.finfo
    return float(finfo(dtype).smallest_normal)


def gamma(n: Any, dtype: Any = jnp.float32) -> Any:
    """Return the largest relative error that n roundings leave: ``n u / (1 - n u)``.

    Args:
        n: Number of roundings, 0 or more, a number or an array of numbers; halves are allowed,
            since a square root halves an exponent.
        dtype: The dtype that each of them rounds to.

    Returns:
        The bound, of the shape of n.

    Raises:
        ValueError: n is negative, or so large that n roundings may leave nothing of the value.
    """
    nu = np.asarray(n, np.float64) * unit_roundoff(dtype)
    if np.any(nu < 0) or np.any(nu >= 1):
        raise ValueError(
            f"n is {n}, but the bound holds for 0 <= n < {1 / unit_roundoff(dtype):.0f} roundings "
            f"to {jnp.dtype(dtype).name}: count again, or sum in a wider dtype"
        )
    return nu / (1 - nu)


def stored(bound: ArrayLike, exact: ArrayLike, dtype: Any, *, held: Any = jnp.float32) -> Array:
    """Return the bound of a value after it has been stored in a dtype.

    Args:
        bound: Bound on the absolute error before.
        exact: The exact value.
        dtype: The dtype that it is stored in.
        held: The dtype that it was computed in. Storing in one that is no narrower is exact.

    Returns:
        Bound on the absolute error after, of the shape of bound and exact.
    """
    bound, exact = np.asarray(bound, np.float64), np.asarray(exact, np.float64)
    if significant_bits(dtype) >= significant_bits(held):
        return bound
    size, least = np.abs(exact), smallest_normal(dtype)
    flushed = np.where(size - bound < least, least, 0.0)
    return np.asarray(bound + unit_roundoff(dtype) * (size + bound) + flushed)


def dot_bound(
    x: Any, y: Any, *, bk: int | None = None, accumulator: Any = jnp.float32, dtype: Any = None
) -> Array:
    """Return how far a computed ``x @ y`` may be from the exact one, element by element.

    Each of the K products is rounded once, unless its factors are so short that it is exact, and
    then goes through additions: K - 1 of them at most, in whatever order. Summed by blocks of bk it
    goes through bk - 1 in its block, and then through one for each further block. The roundings
    scale with the sizes of the terms, ``|x| @ |y|``, and not with the sum, which may be close to 0.

    Args:
        x: (M, K), in the dtype that the kernel is given.
        y: (K, N), likewise.
        bk: Length of the blocks of K whose sums are finished before they are added to each other;
            None where nothing is known of the order.
        accumulator: The dtype of every sum.
        dtype: The dtype that the result is stored in; the accumulator's by default.

    Returns:
        (M, N), float64. The error of a reference in float64 is allowed for as well.
    """
    K = x.shape[1]
    shortest = significant_bits(x.dtype) + significant_bits(y.dtype)
    products = 0 if shortest <= significant_bits(accumulator) else 1
    additions = K - 1 if bk is None else min(bk, K) - 1 + -(-K // bk) - 1
    relative = gamma(products + additions, accumulator) + gamma(K, jnp.float64)

    x64, y64 = np.asarray(x, np.float64), np.asarray(y, np.float64)
    terms = np.abs(x64) @ np.abs(y64)
    flushed = 2 * K * smallest_normal(accumulator) * (1 + relative)
    bound = relative * terms + flushed
    return stored(bound, x64 @ y64, accumulator if dtype is None else dtype, held=accumulator)


def softmax_bound(x: Any) -> Array:
    """Return how far the softmax of rows may be off that is computed in float32.

    The maximum is subtracted first. The difference d = x - max is rounded, and the exponential
    turns that relative error of d into an absolute one of the exponent: a factor of exp(|d| u) on
    the result. Then come the roundings of exp, of the sum of N positive terms, and of the division.

    Args:
        x: (M, N), float32 or bfloat16: finite, or -inf in places, but not in a whole row.

    Returns:
        (M, N), float64, for a result that is stored in the dtype of x.
    """
    x64 = np.asarray(x, np.float64)
    N = x64.shape[1]
    d = x64.max(axis=1, keepdims=True) - x64
    e = np.exp(-d)
    share = e / e.sum(axis=1, keepdims=True)

    du = np.where(share > 0, d, 0.0) * unit_roundoff(jnp.float32)
    least_sum = (share * np.exp(-du)).sum(axis=1, keepdims=True)
    most_sum = (share * np.exp(du)).sum(axis=1, keepdims=True)
    factor = np.exp(du) * (1 + gamma(2 * EXP_ROUNDINGS + (N - 1) + DIVISION_ROUNDINGS))
    relative = np.maximum(factor / least_sum - 1, 1 - 1 / (factor * most_sum))
    flushed = 2 * (N + 1) * smallest_normal(jnp.float32)
    return stored(relative * share + flushed, share, x.dtype)


def rms_norm_bound(x: Any, w: Any, eps: float = 1e-6) -> Array:
    """Return how far RMSNorm of rows may be off that is computed in float32.

    The squares are positive, so nothing cancels: one square, N - 1 additions, two roundings of the
    mean and one of adding eps, all halved by the root; then those of rsqrt and of two products.
    The error is relative to the result, element by element.

    Args:
        x: (M, N), float32 or bfloat16; its squares do not overflow.
        w: (N,), float32 or bfloat16.
        eps: Added to the mean square.

    Returns:
        (M, N), float64, for a result that is stored in the dtype of x.
    """
    x64, w64 = np.asarray(x, np.float64), np.asarray(w, np.float64)
    N = x64.shape[1]
    tiny = smallest_normal(jnp.float32)
    relative = gamma((1 + (N - 1) + 2 + 1) / 2 + RSQRT_ROUNDINGS + 2) + tiny / eps
    exact = x64 / np.sqrt((x64 * x64).mean(axis=1, keepdims=True) + eps) * w64
    return stored(relative * np.abs(exact) + 2 * tiny * (1 + np.abs(w64)), exact, x.dtype)


def variance_bound(x: Any, *, passes: int) -> Array:
    """Return how far the variance of rows may be off that is computed in float32.

    One pass takes ``mean(x**2) - mean(x)**2``: two numbers of the size of the squared mean, each
    with its roundings, whose difference may be small. Two passes take ``mean((x - mean(x))**2)``:
    the error of the mean enters squared, and all else is relative to the variance.

    Args:
        x: (M, N), float32 or bfloat16.
        passes: 1 or 2.

    Returns:
        (M,), float64.

    Raises:
        ValueError: passes is neither 1 nor 2.
    """
    x64 = np.asarray(x, np.float64)
    N = x64.shape[1]
    variance, size = x64.var(axis=1), np.abs(x64).mean(axis=1)
    flushed = 4 * N * smallest_normal(jnp.float32)
    if passes == 1:
        squares = gamma(1 + (N - 1) + 2) * (x64 * x64).mean(axis=1)
        squared_mean = gamma(2 * ((N - 1) + 2) + 1) * size**2
        apart = squares + squared_mean
        return np.asarray(apart + unit_roundoff(jnp.float32) * (variance + apart) + flushed)
    if passes == 2:
        of_the_mean = (gamma((N - 1) + 2) * size) ** 2
        return np.asarray(
            of_the_mean + gamma(2 + 1 + (N - 1) + 2) * (variance + of_the_mean) + flushed
        )
    raise ValueError(f"passes is {passes}, but a variance takes 1 or 2: pass one of them")


def worst_ratio(got: Any, want: Any, bound: ArrayLike) -> float:
    """Return the largest error as a fraction of its bound: at most 1 where a result may be right.

    Args:
        got: The computed result.
        want: The reference in float64, of the same shape.
        bound: Bounds on the absolute error, of that shape too.

    Returns:
        The ratio; infinite where the result is no number and the reference is one.

    Raises:
        ValueError: The shapes differ.
    """
    got, want = np.asarray(got).astype(np.float64), np.asarray(want, np.float64)
    bound = np.asarray(bound, np.float64)
    if not got.shape == want.shape == bound.shape:
        raise ValueError(
            f"the shapes of result, reference and bound are {got.shape}, {want.shape} and "
            f"{bound.shape}, but each element has a bound of its own: broadcast them before"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(got == want, 0.0, np.abs(got - want))
        ratio = np.where(error == 0, 0.0, error / bound)
    ratio = np.where(np.isnan(got) & np.isnan(want), 0.0, ratio)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio), initial=0.0))


def assert_within(got: Any, want: Any, bound: ArrayLike) -> None:
    """Insist that every element is within its bound.

    Args:
        got: The computed result.
        want: The reference in float64, of the same shape.
        bound: Bounds on the absolute error, of that shape too.

    Raises:
        AssertionError: An element is further off than it may be; says how many are, and where the
            worst one is.
        ValueError: The shapes differ.
    """
    if worst_ratio(got, want, bound) <= 1:
        return
    got, want = np.asarray(got).astype(np.float64), np.asarray(want, np.float64)
    bound = np.asarray(bound, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.nan_to_num(np.abs(got - want) / bound, nan=np.inf)
    ratio[(got == want) | (np.isnan(got) & np.isnan(want))] = 0.0
    where = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    place = ", ".join(str(int(i)) for i in where)
    raise AssertionError(
        f"{int((ratio > 1).sum())} of {ratio.size} elements are outside their bounds; the worst, "
        f"at ({place}), is {got[where]:.9g} where {want[where]:.9g} is right to within "
        f"{bound[where]:.3g}: {ratio[where]:.3g} times the bound"
    )
