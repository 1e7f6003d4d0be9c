"""Exercise: say how far a matrix product may be off, so that only wrong kernels fail."""

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from pallas_rungs.bounds import unit_roundoff

Tolerance = Callable[[Any, Any], Any]
Product = Callable[[Any, Any], Any]


def starter(x: Any, y: Any) -> Any:
    """Where to begin: one number for every element, as one finds it in many tests."""
    return np.full((x.shape[0], y.shape[1]), 1e-3)


def solution(x: Any, y: Any) -> Any:
    """K roundings in float32 of the sizes of the terms, and one to the dtype of x."""
    K = x.shape[1]
    x64, y64 = np.asarray(x, np.float64), np.asarray(y, np.float64)
    summed = K * 2.0**-24 / (1 - K * 2.0**-24) * (np.abs(x64) @ np.abs(y64))
    return summed + unit_roundoff(x.dtype) * (np.abs(x64 @ y64) + summed)


def relative_to_the_result(x: Any, y: Any) -> Any:
    """Wrong: where products cancel, the result is small and its error is not."""
    return 1e-2 * np.abs(np.asarray(x, np.float64) @ np.asarray(y, np.float64))


def forgets_k(x: Any, y: Any) -> Any:
    """Wrong: one rounding for the sum, however long it is."""
    x64, y64 = np.asarray(x, np.float64), np.asarray(y, np.float64)
    terms, result = np.abs(x64) @ np.abs(y64), np.abs(x64 @ y64)
    return 2.0**-24 * terms + unit_roundoff(x.dtype) * result


def forgets_the_store(x: Any, y: Any) -> Any:
    """Wrong for bfloat16: the result is rounded once more when it is stored."""
    x64, y64 = np.abs(np.asarray(x, np.float64)), np.abs(np.asarray(y, np.float64))
    return x.shape[1] * 2.0**-23 * (x64 @ y64)


def loose(x: Any, y: Any) -> Any:
    """Wrong: every right kernel passes, and so do wrong ones."""
    return 0.1 * (np.abs(np.asarray(x, np.float64)) @ np.abs(np.asarray(y, np.float64)))


WRONG: tuple[tuple[Tolerance, str], ...] = (
    (relative_to_the_result, "rejects a right kernel.*Hint: .* the terms cancel"),
    (forgets_k, "rejects a right kernel.*Hint: .* K of them"),
    (forgets_the_store, "rejects a right kernel.*bfloat16.*Hint: .* stored"),
    (loose, "accepts a wrong kernel, one that forgets the last block of K"),
)


def in_order(x: Any, y: Any) -> Any:
    """Return x @ y, one product after the other, in float32; stored in the dtype of x."""
    return _by_blocks(x, y, 1)


def backwards(x: Any, y: Any) -> Any:
    """Return x @ y, the last product first."""
    return _by_blocks(x[:, ::-1], y[::-1], 1)


def by_blocks(x: Any, y: Any) -> Any:
    """Return x @ y, summed over blocks of K as a tiled kernel does."""
    return _by_blocks(x, y, 32)


def forgets_a_block(x: Any, y: Any) -> Any:
    """Return a wrong product: the last 32 of K are missing."""
    return _by_blocks(x[:, :-32], y[:-32], 32)


def sums_in_bfloat16(x: Any, y: Any) -> Any:
    """Return a wrong product: the sum is rounded to bfloat16 after each block."""
    return _by_blocks(x, y, 32, jnp.bfloat16)


def rounds_its_inputs(x: Any, y: Any) -> Any:
    """Return a wrong product: float32 numbers are cut to bfloat16 before they are multiplied."""
    return _by_blocks(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), 32).astype(x.dtype)


RIGHT: tuple[tuple[Product, str], ...] = (
    (in_order, "one that sums in order"),
    (backwards, "one that sums backwards"),
    (by_blocks, "one that sums by blocks of K"),
)
FAULTY: tuple[tuple[Product, str], ...] = (
    (forgets_a_block, "one that forgets the last block of K"),
    (sums_in_bfloat16, "one that sums in bfloat16"),
    (rounds_its_inputs, "one that rounds float32 inputs to bfloat16"),
)


def check(tolerance: Tolerance) -> None:
    """Try a tolerance on right kernels and wrong ones, on many inputs.

    Args:
        tolerance: takes ``x``, (M, K), and ``y``, (K, N), both float32 or both bfloat16; returns
            for each element of ``x @ y`` how far a right kernel's result may be from it, (M, N). A
            right kernel sums the K products in float32, in an order of its own, and stores the sum
            once, in the dtype of ``x``.

    Raises:
        AssertionError: A right kernel is rejected, or a wrong one accepted; says which.
    """
    for x, y, where, hint, faulty in _inputs():
        want = np.asarray(x, np.float64) @ np.asarray(y, np.float64)
        given = np.asarray(tolerance(x, y), np.float64)
        if given.shape != want.shape or not np.isfinite(given).all():
            raise AssertionError(
                f"tolerance(x, y) should be {want.shape} finite numbers, and is of shape "
                f"{given.shape}, {int(np.isfinite(given).sum())} of them finite"
            )
        for product, name in RIGHT:
            error = np.abs(np.asarray(product(x, y), np.float64) - want)
            if (error > given).any():
                at = np.unravel_index(np.argmax(error - given), error.shape)
                raise AssertionError(
                    f"tolerance(x, y) rejects a right kernel, {name}, {where}: an error of "
                    f"{error[at]:.3g}, where you allow {given[at]:.3g}\nHint: {hint}"
                )
        for product, name in faulty:
            if (np.abs(np.asarray(product(x, y), np.float64) - want) <= given).all():
                raise AssertionError(
                    f"tolerance(x, y) accepts a wrong kernel, {name}, {where}\n"
                    "Hint: a bound that is far above what roundings can do hides mistakes."
                )


type _Faulty = tuple[tuple[Product, str], ...]


def _inputs() -> Iterator[tuple[Any, Any, str, str, _Faulty]]:
    """Yields x, y, what they are, what a tolerance forgot that rejects right kernels, wrong ones.

    The wrong kernels are those whose mistake shows on these inputs.
    """
    M, K, N = 16, 512, 16
    forgot_k = "each addition may round the wrong way, and there are K of them."
    half_spacings = np.full((1, K), 2.0**-24, np.float32)
    half_spacings[0, 0] = 1.0
    many = "for 1 and many numbers of half its spacing"
    yield half_spacings, np.ones((K, 1), np.float32), many, forgot_k, ()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((M, K)), rng.standard_normal((K, N))
        forgot_terms = "errors are of the size of the terms; the terms cancel, and errors need not."
        forgot_store = "the sum is rounded once more when it is stored in bfloat16."
        opposite = np.concatenate([x, x], 1), np.concatenate([y, -y])
        for dtype, told, faulty in (
            (np.float32, forgot_k, FAULTY),
            (jnp.bfloat16, forgot_store, FAULTY[:2]),
        ):
            name = jnp.dtype(dtype).name

            def of(pair: tuple[Any, Any], dtype: Any = dtype) -> tuple[Any, Any]:
                return pair[0].astype(dtype), pair[1].astype(dtype)

            yield *of(opposite), f"for {name} inputs whose products cancel", forgot_terms, ()
            yield *of((np.abs(x), np.abs(y))), f"for positive {name} inputs", told, faulty
            yield *of((x, y)), f"for normal {name} inputs", forgot_terms, faulty[:1]


def _by_blocks(x: Any, y: Any, bk: int, accumulator: Any = np.float32) -> Any:
    x32, y32 = np.asarray(x).astype(np.float32), np.asarray(y).astype(np.float32)
    total = np.zeros((x.shape[0], y.shape[1]), accumulator)
    for start in range(0, x.shape[1], bk):
        block = np.zeros(total.shape, np.float32)
        for k in range(start, start + bk):
            block += x32[:, k, None] * y32[k]
        total = (total.astype(np.float32) + block).astype(accumulator)
    return total.astype(x.dtype)
