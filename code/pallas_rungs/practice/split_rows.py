"""Exercise: split each row in two inside a kernel, where layout inference refuses to reshape."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.ladder import climb

Body = Callable[[Any, Any], None]

ROWS, COLUMNS = 5, 200


def split(x: jax.Array, body: Body) -> jax.Array:
    """Call a kernel that makes rows of half the length: (5, 200) to (10, 100), float32.

    Args:
        x: (5, 200).
        body: writes the (10, 100) numbers of `o_ref`, in the order that `x.reshape(10, 100)` has.
    """
    out: jax.Array = pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct((2 * ROWS, COLUMNS // 2), x.dtype)
    )(x)
    return out


def starter(x_ref: Any, o_ref: Any) -> None:
    """Where to begin: says what is wanted, and has no layout."""
    o_ref[...] = x_ref[...].reshape(2 * ROWS, COLUMNS // 2)


def solution(x_ref: Any, o_ref: Any) -> None:
    """Each half of a row is read and written where it belongs: no vector changes its shape."""
    half = COLUMNS // 2
    for i in range(ROWS):
        o_ref[2 * i, :] = x_ref[i, :half]
        o_ref[2 * i + 1, :] = x_ref[i, half:]


def through_one_axis(x_ref: Any, o_ref: Any) -> None:
    """Wrong: by way of one axis, which is two reshapes of the refused kind."""
    o_ref[...] = x_ref[...].reshape(-1).reshape(2 * ROWS, COLUMNS // 2)


def halves_below_each_other(x_ref: Any, o_ref: Any) -> None:
    """Wrong: compiles, and puts all left halves above all right ones."""
    half = COLUMNS // 2
    o_ref[:ROWS] = x_ref[:, :half]
    o_ref[ROWS:] = x_ref[:, half:]


def padded_rows(x_ref: Any, o_ref: Any) -> None:
    """Wrong: rows of 128 have a layout, but 128 numbers of a row are not its half."""
    padded = jnp.pad(x_ref[...], ((0, 0), (0, 56))).reshape(2 * ROWS, 128)
    o_ref[...] = padded[:, : COLUMNS // 2]


WRONG: tuple[tuple[Body, str], ...] = (
    (through_one_axis, "slices"),
    (halves_below_each_other, "next to each other"),
    (padded_rows, "next to each other"),
)


def check(body: Body) -> None:
    """Compute with the interpreter, then compile for v5e.

    Where libtpu is not installed, only the numbers are checked.

    Args:
        body: a kernel's body that takes `x_ref` (5, 200) and `o_ref` (10, 100), float32.

    Raises:
        AssertionError: the numbers are not those of the reshape, or the compiler refuses; holds
            what the rung said and a hint.
    """

    def call(x: jax.Array) -> jax.Array:
        return split(x, body)

    def reference(x: np.ndarray) -> np.ndarray:
        return np.asarray(x, np.float64).reshape(2 * ROWS, COLUMNS // 2)

    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    said = climb(call, x, reference=reference, rungs=("interpret", "compile"), chips=("v5e",))
    if said.status("interpret") != "passed":
        raise AssertionError(
            f"{said.of('interpret').summary}\n"
            "Hint: the two halves of a row stand next to each other in the result, rows 2 i and "
            "2 i + 1"
        )
    if said.status("compile") == "refused":
        raise AssertionError(
            f"{said.of('compile').summary}\n"
            "Hint: let no vector change its shape; read and write slices of the refs"
        )
