"""Elementwise addition where each program works out for itself which elements are its own.

The plainest grid there is. It is right in the interpreters, and the compiler refuses it for every
chip: a TPU reads a vector from offsets that are provably multiples of 128, and these are multiples
of 4. In ``add``, blocks do the same arithmetic, and the compiler accepts it.
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import check_alike, check_dtype, refusal

CHIPS: tuple[str, ...] = ()
"""None: the compiler cannot prove that 4 * i is a multiple of 128."""


def add_by_offsets_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add the four elements that belong to this program. Every ref is a whole vector."""
    first = 4 * pl.program_id(0)
    mine = pl.ds(first, 4)
    o_ref[mine] = x_ref[mine] + y_ref[mine]


def add_by_offsets(x: jax.Array, y: jax.Array, *, interpret: Any = False) -> jax.Array:
    """Add two vectors, four elements per program.

    Args:
        x: (N,), float32, N a multiple of 4.
        y: The same shape and dtype as x.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x + y, (N,), float32.

    Raises:
        ValueError: The arrays are no such vectors, or differ.
    """
    check_dtype("x", x, ("float32",))
    check_alike("x", x, "y", y)
    if x.ndim != 1 or x.size == 0 or x.size % 4:
        raise refusal(
            "the shape of x",
            x.shape,
            "each program adds four elements of a vector, and none may be left over",
            "pass a vector whose length is a multiple of 4",
        )
    return pl.pallas_call(
        add_by_offsets_kernel,
        grid=(x.size // 4,),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x, y)


def add_by_offsets_reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x + y in float64."""
    return np.asarray(x, np.float64) + np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return inputs: the four programs of the book, one program, many."""

    def pair(N: int) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(N, dtype=np.float32), 10 * np.arange(N, dtype=np.float32)

    return (
        Case("four programs", pair(16)),
        Case("one program", pair(4)),
        Case("many programs", pair(256)),
    )
