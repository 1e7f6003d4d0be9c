"""A kernel in float16, the half precision of GPUs."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "works on a GPU and in both interpreters; the TPU compiler: Invalid vector type for load"
RULE = "This chip's half precision is bfloat16: convert outside the kernel, and mind its 8 bits."
FIRST_CAUGHT = "compile"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "refused",
}


def double_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Double each element."""
    o_ref[...] = 2 * x_ref[...]


def double(x: jax.Array) -> jax.Array:
    """Call the kernel on x as a whole, whatever its dtype."""
    return pl.pallas_call(double_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def broken(x: jax.Array) -> jax.Array:
    """Double x, (16, 128) float16."""
    return double(x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (16, 128) float16, by way of bfloat16."""
    return double(x.astype(jnp.bfloat16)).astype(x.dtype)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return integers below 256, which both types hold exactly."""
    x = (np.arange(16 * 128) % 256).reshape(16, 128).astype(np.float16)
    return (Case("16 rows", (x,)),)
