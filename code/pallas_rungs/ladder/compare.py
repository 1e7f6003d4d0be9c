"""Comparing a result with its reference: how much differs, and where.

Tolerances
----------
An error of a result is a sum of roundings. With unit roundoff u = eps / 2, n roundings of random
sign add up to about sqrt(n)·u of the size of the terms. Two cases are told apart by the narrowest
float type that the program rounds to:

- 32 bits and wider: sums are accumulated in that type. n = 2¹⁴ roundings (a dot product of length
  16 384) give sqrt(n)·u = 128·u = 64·eps, which is 7.6e-6 for float32.
- 16 bits and narrower: such types hold inputs and results, sums are kept in float32. A handful of
  roundings remains (an operand, an intermediate, the result), so 4·eps: 3.1e-2 for bfloat16,
  3.9e-3 for float16.

An exponential turns the absolute error of its operand, which grows with the operand, into a
relative one: a program of the first kind that takes exponentials gets 16 times that, for operands
up to 16.

That is the relative tolerance. The absolute one covers results that cancel: their error follows the
size of the terms, for which the root mean square of the reference stands in. It is the relative
tolerance (a quarter of it for narrow types) times that root mean square.
Integers and booleans must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pallas_rungs.ladder.features import epsilon
from pallas_rungs.ladder.index_maps import Tiling
from pallas_rungs.ladder.patterns import patterns_of
from pallas_rungs.ladder.verdict import Difference

_ACCUMULATED_ROUNDINGS = 64
_STORED_ROUNDINGS = 4
_EXPONENT = 16


@dataclass(frozen=True)
class Tolerance:
    """Bounds on an error: `|got - want| <= atol + rtol * |want|`."""

    rtol: float
    atol: float


def default_tolerance(
    dtype: Any, want: np.ndarray[Any, Any], *, exponentials: bool = False
) -> Tolerance:
    """Return the default tolerance for results rounded to `dtype`.

    Args:
      dtype: the narrowest float type that the program rounds to; integers and booleans give zero.
      want: the reference, for its size.
      exponentials: the program takes exponentials.
    """
    if not jnp.issubdtype(dtype, jnp.inexact):
        return Tolerance(0.0, 0.0)
    wide = np.dtype(dtype).itemsize >= 4
    rtol = epsilon(dtype) * (_ACCUMULATED_ROUNDINGS if wide else _STORED_ROUNDINGS)
    finite = np.abs(want[np.isfinite(want)])
    if wide and exponentials:
        rtol *= _EXPONENT
    size = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
    return Tolerance(rtol, rtol * size * (1.0 if wide else 0.25))


def compare(
    got: Any,
    want: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    rounds_to: Any = None,
    exponentials: bool = False,
    tilings: Mapping[tuple[int, ...], Tiling] | None = None,
) -> Difference | None:
    """Compare two pytrees of arrays, leaf by leaf.

    NaN equals NaN and an infinity equals the same infinity. Tuples, lists and other containers are
    only told apart by their number of leaves.

    Args:
      got: the result.
      want: the reference.
      rtol: relative tolerance for floats; None for the default.
      atol: absolute tolerance for floats; None for the default.
      rounds_to: the narrowest float type that the program rounds to; the default tolerance is that
        of this type where it is coarser than the result's own.
      exponentials: the program takes exponentials.
      tilings: how arrays of a shape were cut into blocks, where that is known.

    Returns:
      None when they agree, else the difference in the first leaf that differs.
    """
    got_leaves = jax.tree_util.tree_leaves_with_path(got)
    want_leaves = jax.tree.leaves(want)
    if len(got_leaves) != len(want_leaves):
        return Difference(
            count=0,
            total=0,
            mismatch=f"{len(got_leaves)} arrays came back, the reference has {len(want_leaves)}",
        )
    for (path, got_leaf), want_leaf in zip(got_leaves, want_leaves, strict=True):
        difference = compare_arrays(
            got_leaf,
            want_leaf,
            rtol=rtol,
            atol=atol,
            rounds_to=rounds_to,
            exponentials=exponentials,
            tilings=tilings,
        )
        if difference is not None:
            name = jax.tree_util.keystr(path)
            return Difference(**{**vars(difference), "output": name})
    return None


def compare_arrays(
    got: Any,
    want: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    rounds_to: Any = None,
    exponentials: bool = False,
    tilings: Mapping[tuple[int, ...], Tiling] | None = None,
) -> Difference | None:
    """Compare two arrays; see `compare`."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return Difference(
            count=max(got.size, want.size),
            total=max(got.size, want.size),
            mismatch=f"shape {_shape(got)} came back, the reference has {_shape(want)}",
        )
    exact = not jnp.issubdtype(got.dtype, jnp.inexact)
    got_values, want_values = _widened(got), _widened(want)
    if exact:
        tolerance = Tolerance(0.0, 0.0)
    else:
        default = default_tolerance(
            _coarser(got.dtype, rounds_to), want_values, exponentials=exponentials
        )
        tolerance = Tolerance(
            default.rtol if rtol is None else rtol, default.atol if atol is None else atol
        )
    differs = _differs(got_values, want_values, tolerance)
    count = int(np.count_nonzero(differs))
    if not count:
        return None
    first = tuple(int(i[0]) for i in np.nonzero(differs)) if got.ndim else ()
    both = np.isfinite(got_values) & np.isfinite(want_values)
    error = np.abs(got_values[both] - want_values[both]) if both.any() else np.zeros(1)
    nonzero = both & (want_values != 0)
    relative = (
        np.abs(got_values[nonzero] - want_values[nonzero]) / np.abs(want_values[nonzero])
        if nonzero.any()
        else np.zeros(1)
    )
    tiling = (tilings or {}).get(got.shape)

    def agree(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
        return not _differs(one, other, tolerance).any()

    return Difference(
        count=count,
        total=int(got.size),
        nan=int(np.count_nonzero(differs & np.isnan(got_values))),
        max_abs_error=float(np.max(error)),
        max_rel_error=float(np.max(relative)),
        first_index=first,
        got=_number(got[first]),
        want=_number(want[first]),
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        patterns=()
        if not got.ndim
        else patterns_of(got_values, want_values, differs, tiling.block if tiling else (), agree),
        place=tiling.place_of(first) if tiling else "",
    )


def reference_result(reference: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, str]:
    """Call `reference` in float64 and return its result and how it was called.

    Floating arrays are widened to float64 and jax computes in 64 bits. A reference that cannot be
    called that way is called once more with the arguments as they are.

    Raises:
      Exception: what the reference raises when called with the arguments as they are.
    """
    try:
        with jax.enable_x64(True):
            wide = jax.tree.map(_for_reference, tuple(args))
            return jax.tree.map(np.asarray, reference(*wide)), "float64"
    except Exception:
        plain = jax.tree.map(_plain, tuple(args))
        return jax.tree.map(np.asarray, reference(*plain)), "as given"


def _for_reference(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array | np.ndarray | np.generic):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            return np.asarray(leaf).astype(np.float64)
        return _plain(leaf)
    return leaf


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
        return np.asarray(leaf)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _differs(
    got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], tolerance: Tolerance
) -> np.ndarray[Any, Any]:
    with np.errstate(all="ignore"):
        same = got == want
        close = np.abs(got - want) <= tolerance.atol + tolerance.rtol * np.abs(want)
        finite = np.isfinite(got) & np.isfinite(want)
        both_nan = np.isnan(got) & np.isnan(want)
    return np.asarray(~(same | both_nan | (finite & close)))


def _widened(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `array` as float64, int64-exact integers as objects of NumPy's widest type."""
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        return array.astype(np.complex128)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(np.longdouble)
    return array.astype(np.float64)


def _coarser(dtype: Any, other: Any) -> Any:
    if other is None or not jnp.issubdtype(dtype, jnp.floating):
        return dtype
    return other if epsilon(other) > epsilon(dtype) else dtype


def _shape(array: np.ndarray[Any, Any]) -> str:
    return f"{np.dtype(array.dtype).name}{list(array.shape)}"


def _number(value: Any) -> str:
    if np.asarray(value).dtype.kind in "biu":
        return str(value)
    number = complex(value)
    return f"{number:.6g}" if number.imag else f"{number.real:.6g}"
