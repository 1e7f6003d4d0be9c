"""Exercise: which block ``interpret=True`` hands to a kernel, whatever index the map returns."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

HandedOver = Callable[[np.ndarray, int, int], np.ndarray]


def seen(array: np.ndarray, size: int, index: int) -> np.ndarray:
    """Return the block that a kernel sees under ``interpret=True``.

    Args:
        array: (n,), float32.
        size: of a block, in elements.
        index: what the index map returns.

    Returns:
        (size,), float32.
    """

    def kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
        o_ref[...] = x_ref[...]

    block: jax.Array = pl.pallas_call(
        kernel,
        grid=(1,),
        in_specs=[pl.BlockSpec((size,), lambda i: (i + index,))],
        out_specs=pl.BlockSpec((size,), lambda i: (i,)),
        out_shape=jax.ShapeDtypeStruct((size,), jnp.float32),
        interpret=True,
    )(jnp.asarray(array))
    return np.asarray(block)


def starter(array: np.ndarray, size: int, index: int) -> np.ndarray:
    """Take the slice that NumPy gives: too short at the end, empty past it."""
    return array[size * index : size * (index + 1)]


def solution(array: np.ndarray, size: int, index: int) -> np.ndarray:
    """Pad to whole blocks, wrap a negative start once, and move what is left into range."""
    blocks = -(-len(array) // size)
    padded = np.full(blocks * size, np.nan, np.float32)
    padded[: len(array)] = array
    start = size * index
    if start < 0:
        start += len(padded)
    start = min(max(start, 0), len(padded) - size)
    return padded[start : start + size]


def without_padding(array: np.ndarray, size: int, index: int) -> np.ndarray:
    """Wrong: the last block is moved back over the one before, instead of hanging over."""
    start = size * index
    if start < 0:
        start += len(array)
    start = min(max(start, 0), len(array) - size)
    return array[start : start + size]


def never_wrapping(array: np.ndarray, size: int, index: int) -> np.ndarray:
    """Wrong: a negative start is moved to zero, as a start past the end is moved back."""
    padded = np.pad(array, (0, -len(array) % size), constant_values=np.nan)
    start = min(max(size * index, 0), len(padded) - size)
    return padded[start : start + size]


def always_wrapping(array: np.ndarray, size: int, index: int) -> np.ndarray:
    """Wrong: every index is taken modulo the number of blocks."""
    padded = np.pad(array, (0, -len(array) % size), constant_values=np.nan)
    start = size * index % len(padded)
    return padded[start : start + size]


def wrapping_for_ever(array: np.ndarray, size: int, index: int) -> np.ndarray:
    """Wrong: the size is added until the start is no longer negative."""
    padded = np.pad(array, (0, -len(array) % size), constant_values=np.nan)
    start = size * index
    start = start % len(padded) if start < 0 else min(start, len(padded) - size)
    return padded[start : start + size]


WRONG: tuple[tuple[HandedOver, str], ...] = (
    (without_padding, "padded"),
    (never_wrapping, "added to a negative start"),
    (always_wrapping, "moved back"),
    (wrapping_for_ever, "added once"),
)


def check(handed_over: HandedOver) -> None:
    """Compare with what a kernel sees under ``interpret=True``.

    Args:
        handed_over: takes an array of shape (n,), a block size and a block index, and returns what
            `seen` returns for them.

    Raises:
        AssertionError: a block differs; says for which index, and what to look at.
    """
    hints = {
        2: "Before the loop, arrays are padded to whole blocks.",
        -1: "The size of the padded array is added to a negative start.",
        4: "A start past the end is moved back until the block fits.",
        -8: "The size is added once; what is still negative is moved to zero.",
    }
    array = np.arange(1, 11, dtype=np.float32)
    for index in (0, 1, 2, -1, 4, -8):
        got = np.asarray(handed_over(array, 4, index))
        want = seen(array, 4, index)
        if got.shape != want.shape or not np.array_equal(got, want, equal_nan=True):
            raise AssertionError(
                f"handed_over(array, 4, {index}) returned {got.tolist()}; a kernel sees "
                f"{want.tolist()}. {hints.get(index, 'A block starts at size * index.')}"
            )
