"""The last row of a Ref by index -1, as in NumPy.

No rung tells. The lowered module shows it to whoever reads it: a ``vector.load`` from row -1 of the
block, which is memory that belongs to something else.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "none on any rung: the compiled kernel loads from the row before the start of the block"
RULE = "A Ref is addressed, not indexed as in NumPy: write the row as x_ref.shape[0] - 1."
FIRST_CAUGHT = "none"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write the last row to every row of the output, counting from the end."""
    o_ref[...] = jnp.broadcast_to(x_ref[-1, :][None, :], o_ref.shape)


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write the last row to every row of the output, counting from the start."""
    last = x_ref.shape[0] - 1
    o_ref[...] = jnp.broadcast_to(x_ref[last, :][None, :], o_ref.shape)


def broken(x: jax.Array) -> jax.Array:
    """Repeat the last row of x, (16, 128) float32, eight times."""
    return pl.pallas_call(broken_kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)


def fixed(x: jax.Array) -> jax.Array:
    """Repeat the last row of x, (16, 128) float32, eight times."""
    return pl.pallas_call(fixed_kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the last row in float64, repeated eight times."""
    return np.broadcast_to(np.asarray(x, np.float64)[-1:], (8, 128))


def cases() -> tuple[Case, ...]:
    """Return a matrix whose rows all differ."""
    return (Case("sixteen rows", (np.arange(16 * 128, dtype=np.float32).reshape(16, 128),)),)
