"""Exercise: say how many visits a grouped product makes, before it runs."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.megablox.gmm import make_group_metadata

Count = Callable[[Sequence[int], int, bool], int]

BM = 8

SIZES: tuple[tuple[int, ...], ...] = (
    (8, 8, 0, 8),
    (5, 3, 10, 6),
    (5, 0, 11, 8),
    (5, 6, 13, 0),
    (7, 1, 1, 15),
    (0, 24, 0, 0),
)
"""Sizes of four groups of 24 rows."""


def starter(sizes: Sequence[int], bm: int, empty: bool) -> int:
    """Where to begin: as many tiles as the rows fill."""
    return -(-sum(sizes) // bm)


def solution(sizes: Sequence[int], bm: int, empty: bool) -> int:
    """For each group the tiles from the one that it starts in to the one that it ends in."""
    visits = start = 0
    for size in sizes:
        end = start + size
        visits += -(-end // bm) - start // bm if size else int(empty)
        start = end
    return visits


def each_from_a_tile(sizes: Sequence[int], bm: int, empty: bool) -> int:
    """Wrong: counts as if each group began at the edge of a tile."""
    return sum(-(-size // bm) if size else int(empty) for size in sizes)


def as_long_as_the_tables(sizes: Sequence[int], bm: int, empty: bool) -> int:
    """Wrong: takes the length of the tables, which is for the worst case."""
    return -(-sum(sizes) // bm) + len(sizes) - 1


def empty_never(sizes: Sequence[int], bm: int, empty: bool) -> int:
    """Wrong: visits no empty group, whoever asks."""
    return solution(sizes, bm, empty=False)


WRONG: tuple[tuple[Count, str], ...] = (
    (each_from_a_tile, "in the middle of a tile"),
    (as_long_as_the_tables, "the worst case"),
    (empty_never, "the block of an empty group"),
)


def check(count: Count) -> None:
    """Compare with the installed megablox, for six ways to cut 24 rows into groups.

    Args:
        count: called with the groups' sizes, the rows of a tile, and whether empty groups are
            visited too, as `tgmm` does; returns the number of visits.

    Raises:
        AssertionError: a number is not the library's; holds both and a hint.
    """
    for empty in (False, True):
        for sizes in SIZES:
            got, wanted = count(sizes, BM, empty), _visits(sizes, empty)
            if got != wanted:
                raise AssertionError(
                    f"{sizes} in tiles of {BM}, empty groups "
                    f"{'visited' if empty else 'passed over'}: {got}, and the library makes "
                    f"{wanted} visits. Hint: {_hint(sizes, empty, got, wanted)}"
                )


def _visits(sizes: Sequence[int], empty: bool) -> int:
    return int(_by_library(jnp.array(sizes, jnp.int32), empty=empty))


@partial(jax.jit, static_argnames="empty")
def _by_library(sizes: jax.Array, *, empty: bool) -> jax.Array:
    """Return the number of visits that the installed megablox makes."""
    _, visits = make_group_metadata(
        group_sizes=sizes,
        m=24,
        tm=BM,
        start_group=jnp.int32(0),
        num_nonzero_groups=4,
        visit_empty_groups=empty,
    )
    return jnp.asarray(visits)


def _hint(sizes: Sequence[int], empty: bool, got: int, wanted: int) -> str:
    if empty and got == solution(sizes, BM, empty=False):
        return "somebody has to write zeros to the block of an empty group"
    if got > wanted:
        return "the tables are as long as the worst case, the grid is not"
    return "a group that begins in the middle of a tile visits that tile as well"
