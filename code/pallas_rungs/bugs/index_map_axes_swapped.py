"""An index map that returns its block indices in the other order, on a square of blocks."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "finite but wrong"
SYMPTOM = "the diagonal blocks are right, the others have changed places"
RULE = "An index map returns one block index for each axis of the array, in the array's order."
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
    """Double x, (16, 256) float32, in two by two blocks, read by columns and written by rows."""
    return pl.pallas_call(
        double_kernel,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (j, i))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (16, 256) float32, in two by two blocks."""
    return pl.pallas_call(
        double_kernel,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return a matrix of two by two blocks whose elements all differ."""
    return (Case("two by two", (np.arange(16 * 256, dtype=np.float32).reshape(16, 256),)),)
