"""Exercise: say without a compiler how many rows of a block fit, and let the compiler judge."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from pallas_rungs.ladder import Report, climb

Rows = Callable[[int, int], int]

LIMIT = 16 * 2**20
"""Bytes of VMEM that libtpu gives a kernel on a v5e, unless the kernel asks for more."""

WIDTHS = (1024, 1536)


def doubled(x: jax.Array, bm: int) -> jax.Array:
    """Return 2 x, bm whole rows a program: one input and one output, both in blocks.

    Args:
        x: (M, N), float32.
        bm: rows of a block, a multiple of 8 that divides M.
    """

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = 2 * x_ref[...]

    rows = pl.BlockSpec((bm, x.shape[1]), lambda i: (i, 0))
    out: jax.Array = pl.pallas_call(
        kernel,
        grid=(x.shape[0] // bm,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
    return out


def starter(columns: int, limit: int) -> int:
    """Where to begin: one block of float32 fills the limit."""
    return limit // (4 * columns) // 8 * 8


def solution(columns: int, limit: int) -> int:
    """Two arrays, each in two buffers: one is worked on while the other is under way."""
    return limit // (2 * 2 * 4 * columns) // 8 * 8


def single_buffers(columns: int, limit: int) -> int:
    """Wrong: counts both arrays, and one buffer for each."""
    return limit // (2 * 4 * columns) // 8 * 8


def no_tiles(columns: int, limit: int) -> int:
    """Wrong: the largest number of rows, which is no multiple of 8 for every width."""
    return limit // (2 * 2 * 4 * columns)


def three_buffers(columns: int, limit: int) -> int:
    """Wrong: counts a third buffer, which nobody allocates."""
    return limit // (2 * 3 * 4 * columns) // 8 * 8


WRONG: tuple[tuple[Rows, str], ...] = (
    (single_buffers, "two buffers"),
    (no_tiles, "multiple of 8"),
    (three_buffers, "Eight rows more still fit"),
)


def check(rows: Rows) -> None:
    """Compile blocks of as many rows for v5e, and of eight more, which must be refused.

    Where libtpu is not installed nobody can judge, and every multiple of 8 is accepted.

    Args:
        rows: called with the columns of a block and a limit in bytes; returns rows.

    Raises:
        AssertionError: the number is no multiple of 8, or not the largest that compiles; holds what
            the compiler said and a hint.
    """
    for columns in WIDTHS:
        bm = rows(columns, LIMIT)
        said = f"{bm} rows of {columns} float32"
        if bm % 8 or bm <= 0:
            raise AssertionError(
                f"{said}: a block of part of the rows has a multiple of 8 of them, the tile's"
            )
        fits = _compiled(columns, bm)
        if fits.status("compile") == "refused":
            raise AssertionError(
                f"{said}: {fits.of('compile').summary}\n"
                "Hint: count both arrays, and two buffers for each: one is computed on while the "
                "next block is under way"
            )
        if _compiled(columns, bm + 8).status("compile") == "passed":
            raise AssertionError(f"{said} compile. Eight rows more still fit")


def _compiled(columns: int, bm: int) -> Report:
    x = jax.ShapeDtypeStruct((4 * bm, columns), jnp.float32)
    return climb(lambda x: doubled(x, bm), x, rungs=("compile",), chips=("v5e",))
