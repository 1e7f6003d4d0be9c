"""Exercise: the index map of the keys in causal attention, which asks for the next row's early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

KeyMap = Callable[[Any, Any, int, int], Any]

BLOCKS = ((128, 128), (256, 128), (128, 256), (384, 128), (128, 384))
ROWS = 6


def starter(i: Any, j: Any, bq: int, bk: int) -> Any:
    """Where to begin: each program asks for block j, whether it computes or not."""
    return j


def solution(i: Any, j: Any, bq: int, bk: int) -> Any:
    """Past the last block that the last query of block i sees: what the next row begins with."""
    return jnp.where(j * bk < (i + 1) * bq, j, 0)


def stays(i: Any, j: Any, bq: int, bk: int) -> Any:
    """Wrong here: fetches as little, but the next row's first block only when that row begins."""
    return jnp.minimum(j, ((i + 1) * bq - 1) // bk)


def equal_blocks(i: Any, j: Any, bq: int, bk: int) -> Any:
    """Wrong: compares numbers of blocks, as if both kinds were equally long."""
    return jnp.where(j <= i, j, 0)


def first_query(i: Any, j: Any, bq: int, bk: int) -> Any:
    """Wrong: asks what the first query of the block sees; the last one sees more."""
    return jnp.where(j * bk <= i * bq, j, 0)


def decided_in_python(i: Any, j: Any, bq: int, bk: int) -> Any:
    """Wrong: right for integers, but an index map is traced."""
    return j if j * bk < (i + 1) * bq else 0


WRONG: tuple[tuple[KeyMap, str], ...] = (
    (stays, "the next row begins with"),
    (equal_blocks, "places, not blocks"),
    (first_query, "the last query"),
    (decided_in_python, "is traced"),
)


def check(key_map: KeyMap) -> None:
    """Ask the map what each program of some grids holds.

    Args:
        key_map: called with the program's i and j, traced, and the lengths of a block of queries
            and of a block of keys; returns the block of keys that the program holds.

    Raises:
        AssertionError: a program that computes holds another block than its own, one that computes
            nothing does not ask for the next row's, or the map cannot be traced; holds the
            program and a hint.
    """
    for bq, bk in BLOCKS:
        length = ROWS * max(bq, bk)
        shape = (length // bq, length // bk)
        for (i, j), got in np.ndenumerate(_held(key_map, shape, bq, bk)):
            program = f"blocks of {bq} queries and {bk} keys: program ({i}, {j}) holds block {got}"
            if j * bk <= (i + 1) * bq - 1:
                if got != j:
                    raise AssertionError(
                        f"{program}, and computes with {j}\n"
                        "Hint: compare places, not blocks: where this one begins, with where the "
                        "last query of block i stands"
                    )
            elif got:
                raise AssertionError(
                    f"{program}, and computes nothing\n"
                    "Hint: while it passes, the copy of what the next row begins with can start"
                )


def _held(key_map: KeyMap, shape: tuple[int, int], bq: int, bk: int) -> np.ndarray:
    """The block of keys that each program of a grid holds."""
    i, j = (index.reshape(-1) for index in np.indices(shape, dtype=np.int32))
    try:
        found = jax.vmap(lambda i, j: jnp.asarray(key_map(i, j, bq, bk)))(i, j)
    except jax.errors.ConcretizationTypeError as error:
        raise AssertionError(
            "a branch of Python's on a traced value.\n"
            "Hint: an index map is traced once for all programs; choose with jnp.where"
        ) from error
    return np.asarray(found).reshape(shape)
