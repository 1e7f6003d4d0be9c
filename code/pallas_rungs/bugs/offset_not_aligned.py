"""Pieces of a vector at offsets that are no multiples of 128."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "the compiler cannot prove that an index is a multiple of 128, and refuses"
RULE = "A slice at a computed offset starts at a provable multiple of the tile: 128 lanes here."
FIRST_CAUGHT = "compile"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "refused",
}


def double_piece_kernel(x_ref: jax.Ref, o_ref: jax.Ref, *, piece: int) -> None:
    """Double the elements that belong to this program. Both refs are whole vectors."""
    mine = pl.ds(piece * pl.program_id(0), piece)
    o_ref[mine] = 2 * x_ref[mine]


def broken(x: jax.Array) -> jax.Array:
    """Double x, (1024,) float32, in pieces of 64 elements."""
    return pl.pallas_call(
        functools.partial(double_piece_kernel, piece=64),
        grid=(16,),
        out_shape=jax.ShapeDtypeStruct((1024,), jnp.float32),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (1024,) float32, in pieces of 128 elements."""
    return pl.pallas_call(
        functools.partial(double_piece_kernel, piece=128),
        grid=(8,),
        out_shape=jax.ShapeDtypeStruct((1024,), jnp.float32),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return a vector of 1024 different elements."""
    return (Case("1024 elements", (np.arange(1024, dtype=np.float32),)),)
