"""Exercise: an order of blocks in which a product reads at most one operand anew in each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Place = Callable[[Any, Any, int, int], tuple[Any, Any]]

GRIDS = ((2, 3), (3, 2), (4, 5), (1, 4), (4, 1))


def starter(i: Any, j: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Where to begin: row by row, each from the left."""
    return i, j


def solution(i: Any, j: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Every second row from the right: a row ends where the next one begins."""
    return i, jnp.where(i % 2 == 0, j, columns - 1 - j)


def always_from_the_right(i: Any, j: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Wrong: every row turned round, so that again both operands change where a row ends."""
    return i, columns - 1 - j


def turned_by_rows(i: Any, j: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Wrong: turns with the length of the other axis, and so leaves the grid or skips blocks."""
    return i, jnp.where(i % 2 == 0, j, rows - 1 - j)


def decided_in_python(i: Any, j: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Wrong: right for integers, but an index map is traced."""
    return i, j if i % 2 == 0 else columns - 1 - j


WRONG: tuple[tuple[Place, str], ...] = (
    (always_from_the_right, "both operands"),
    (turned_by_rows, "each block once"),
    (decided_in_python, "is traced"),
)


def check(place: Place) -> None:
    """Go through some grids in order.

    Args:
        place: called with the program's i and j, traced, and the numbers of rows and columns of
            blocks; returns the row and the column of the block that this program makes.

    Raises:
        AssertionError: a block is left out or made twice, both operands change in one step, or it
            cannot be traced; holds the grid, the programs and a hint.
    """
    for rows, columns in GRIDS:
        made = _in_order(place, rows, columns)
        grid = f"{rows} × {columns} blocks"
        if sorted(made) != list(np.ndindex(rows, columns)):
            raise AssertionError(
                f"{grid}: {made}\nHint: the programs together must make each block once"
            )
        for number, (before, after) in enumerate(itertools.pairwise(made)):
            if before[0] != after[0] and before[1] != after[1]:
                raise AssertionError(
                    f"{grid}: after {before} comes {after}, so step {number + 1} reads "
                    "both operands anew\nHint: begin a row where the one before has ended"
                )


def _in_order(place: Place, rows: int, columns: int) -> list[tuple[int, int]]:
    """The blocks that the programs of a grid make, in the order of the grid."""
    try:  # as an index map is: once, on values that are not known
        jax.make_jaxpr(lambda i, j: place(i, j, rows, columns))(jnp.int32(0), jnp.int32(0))
    except jax.errors.ConcretizationTypeError as error:
        raise AssertionError(
            "a branch of Python's on a traced value.\n"
            "Hint: an index map is traced once for all programs; choose with jnp.where"
        ) from error
    made = (place(np.int32(i), np.int32(j), rows, columns) for i, j in np.ndindex(rows, columns))
    return [(int(row), int(column)) for row, column in made]
