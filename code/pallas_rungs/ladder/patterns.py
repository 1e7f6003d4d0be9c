"""Where in an array the wrong values are, in words: patterns that point at a cause."""

from __future__ import annotations

from typing import Any

import numpy as np


def patterns_of(
    got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], differs: np.ndarray[Any, Any]
) -> tuple[str, ...]:
    """Return what is regular about the values that differ; empty when nothing is.

    Args:
      got: the result.
      want: the reference, of the same shape.
      differs: true where they differ.
    """
    nan = differs & np.isnan(got)
    found = []
    if nan.any():
        found.append(_place(nan, "NaN"))
    elif not got.any():
        found.append("zero everywhere")
    else:
        found += [_place(differs, "wrong"), _repeats(got, want)]
    return tuple(filter(None, found))


def _place(where: np.ndarray[Any, Any], what: str) -> str:
    if where.all():
        return f"{what} everywhere"
    for axis in range(where.ndim):
        others = tuple(other for other in range(where.ndim) if other != axis)
        whole = where.all(axis=others)
        if not np.array_equal(whole, where.any(axis=others)):
            continue
        first, size = int(np.argmax(whole)), whole.size
        if whole[first:].all():
            return f"{what} to the end of axis {axis}, from {first} of {size}"
        return f"{what} in whole slices of axis {axis}, {int(whole.sum())} of {size}, others right"
    return ""


def _repeats(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> str:
    """Say along which axis the second half is the first once more, where it should not be."""
    for axis in range(got.ndim):
        if got.shape[axis] < 2 or got.shape[axis] % 2:
            continue
        first, second = np.split(got, 2, axis=axis)
        if np.array_equal(first, second) and not np.array_equal(*np.split(want, 2, axis=axis)):
            return f"the second half of axis {axis} repeats the first"
    return ""
