"""An output's index map that forgets a grid axis: its programs write over one another."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "NaN where numbers should be"
SYMPTOM = "the first column of blocks holds the values of the last one, and the rest is NaN"
RULE = (
    "Programs whose output map returns the same block write over one another; the last one's "
    "values stay."
)
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def double_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write twice the block. Nothing is wrong with the body."""
    o_ref[...] = 2 * x_ref[...]


def broken(x: jax.Array) -> jax.Array:
    """Double x, (16, 384) float32; the output's map has the rows and a 0."""
    return pl.pallas_call(
        double_kernel,
        grid=(2, 3),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 384), jnp.float32),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (16, 384) float32, each block in its place."""
    return pl.pallas_call(
        double_kernel,
        grid=(2, 3),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((16, 384), jnp.float32),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return a matrix of two by three blocks whose elements all differ."""
    return (Case("two by three", (np.arange(16 * 384, dtype=np.float32).reshape(16, 384),)),)
