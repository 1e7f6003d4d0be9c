"""A kernel that uses an array of the enclosing scope instead of taking it as an operand."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "error while tracing"
SYMPTOM = "ValueError while tracing: the kernel function captures constants"
RULE = "A kernel may close over Python numbers, never over arrays: each array is an operand."
FIRST_CAUGHT = "trace"
EXPECTED = {
    "trace": "refused",
    "interpret": "refused",
    "simulate": "refused",
    "lower": "refused",
    "compile": "refused",
}

WEIGHTS = np.linspace(0.0, 1.0, 128, dtype=np.float32)[None, :]


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Scale each column by a weight that nobody handed in."""
    o_ref[...] = x_ref[...] * WEIGHTS


def fixed_kernel(x_ref: jax.Ref, w_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Scale each column by the weight in a second operand."""
    o_ref[...] = x_ref[...] * w_ref[...]


def broken(x: jax.Array) -> jax.Array:
    """Scale the 128 columns of x, (M, 128) float32, by the captured weights."""
    return pl.pallas_call(broken_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def fixed(x: jax.Array) -> jax.Array:
    """Scale the 128 columns of x, (M, 128) float32, by the weights passed in."""
    out_shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(fixed_kernel, out_shape=out_shape)(x, jnp.asarray(WEIGHTS))


def reference(x: jax.Array) -> np.ndarray:
    """Return the scaled columns in float64."""
    return np.asarray(x, np.float64) * WEIGHTS.astype(np.float64)


def cases() -> tuple[Case, ...]:
    """Return one small matrix."""
    return (Case("eight rows", (np.arange(8 * 128, dtype=np.float32).reshape(8, 128),)),)
