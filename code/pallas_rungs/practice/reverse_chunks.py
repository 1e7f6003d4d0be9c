"""Exercise: four programs copy the quarters of an array in reverse order."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

Kernel = Callable[[Any, Any], None]

PROGRAMS = 4
CHUNK = 4


def starter(x_ref: Any, o_ref: Any) -> None:
    """Where to begin: it finds this program's quarter and does nothing with it."""
    i = pl.program_id(0)
    quarter = x_ref[pl.ds(i * CHUNK, CHUNK)]
    del quarter, o_ref


def solution(x_ref: Any, o_ref: Any) -> None:
    """Program i copies its quarter to the i-th quarter from the end."""
    i = pl.program_id(0)
    mirrored = pl.num_programs(0) - 1 - i
    o_ref[pl.ds(mirrored * CHUNK, CHUNK)] = x_ref[pl.ds(i * CHUNK, CHUNK)]


def off_by_one(x_ref: Any, o_ref: Any) -> None:
    """Wrong: the quarters are counted from one, so program 0 writes past the end."""
    i = pl.program_id(0)
    o_ref[pl.ds((pl.num_programs(0) - i) * CHUNK, CHUNK)] = x_ref[pl.ds(i * CHUNK, CHUNK)]


def reverses_elements(x_ref: Any, o_ref: Any) -> None:
    """Wrong: the elements within a quarter are reversed too."""
    i = pl.program_id(0)
    mirrored = pl.num_programs(0) - 1 - i
    o_ref[pl.ds(mirrored * CHUNK, CHUNK)] = x_ref[pl.ds(i * CHUNK, CHUNK)][::-1]


def stays_in_place(x_ref: Any, o_ref: Any) -> None:
    """Wrong: each quarter is copied to its own place."""
    here = pl.ds(pl.program_id(0) * CHUNK, CHUNK)
    o_ref[here] = x_ref[here]


WRONG: tuple[tuple[Kernel, str], ...] = (
    (off_by_one, "quarter 0 of the output holds"),
    (reverses_elements, r"quarter 0 of the output holds \[15.0, 14.0"),
    (stays_in_place, r"quarter 0 of the output holds \[0.0, 1.0"),
)


def check(kernel: Kernel) -> None:
    """Run ``kernel`` on a grid of four programs and compare its output with the quarters reversed.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, both ``f32[16]``, and writes ``o_ref``.

    Raises:
        AssertionError: an element was not written or has the wrong value; says which quarter,
            what was found and what was wanted.
    """
    x = np.arange(PROGRAMS * CHUNK, dtype=np.float32)
    want = x.reshape(PROGRAMS, CHUNK)[::-1]
    out_shape = jax.ShapeDtypeStruct(x.shape, jnp.float32)
    call = pl.pallas_call(kernel, out_shape=out_shape, grid=(PROGRAMS,), interpret=True)
    got = np.asarray(call(x)).reshape(PROGRAMS, CHUNK)

    if np.isnan(got).all():
        raise AssertionError("the output was never written: assign to o_ref[...]")
    for quarter, (found, wanted) in enumerate(zip(got, want, strict=True)):
        if not np.array_equal(found, wanted):
            raise AssertionError(
                f"quarter {quarter} of the output holds {found.tolist()}, "
                f"and should hold {wanted.tolist()}"
            )
