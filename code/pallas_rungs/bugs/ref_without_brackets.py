"""An operation on a ref, which is a place in memory, where the value in it was meant."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "error while tracing"
SYMPTOM = "TypeError: exp got a Ref, but a Ref can't be passed where an array is expected"
RULE = "A ref is memory, not a value: x_ref[...] reads it, and o_ref[...] = writes it."
FIRST_CAUGHT = "trace"
EXPECTED = {
    "trace": "refused",
    "interpret": "refused",
    "simulate": "refused",
    "lower": "refused",
    "compile": "refused",
}


def broken_kernel(x_ref: Any, o_ref: jax.Ref) -> None:
    """Take the exponential of the ref itself."""
    o_ref[...] = jnp.exp(x_ref)


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Take the exponential of what the ref holds."""
    o_ref[...] = jnp.exp(x_ref[...])


def broken(x: jax.Array) -> jax.Array:
    """Take the exponential of x, (8, 128) float32."""
    return pl.pallas_call(broken_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def fixed(x: jax.Array) -> jax.Array:
    """Take the exponential of x, (8, 128) float32."""
    return pl.pallas_call(fixed_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return exp(x) in float64."""
    return np.exp(np.asarray(x, np.float64))


def cases() -> tuple[Case, ...]:
    """Return numbers from -1 to 1."""
    x = np.linspace(-1, 1, 8 * 128, dtype=np.float32).reshape(8, 128)
    return (Case("from -1 to 1", (x,), rtol=1e-5),)
