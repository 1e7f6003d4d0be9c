"""A float32 sum that is stored into a bfloat16 output without a cast."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "error while tracing"
SYMPTOM = "ValueError while tracing: Invalid dtype for `swap`"
RULE = "A store does not cast: what is written has the dtype of the ref."
FIRST_CAUGHT = "trace"
EXPECTED = {
    "trace": "refused",
    "interpret": "refused",
    "simulate": "refused",
    "lower": "refused",
    "compile": "refused",
}


def broken_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Multiply with float32 sums, and store them as they are."""
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


def fixed_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Multiply with float32 sums, and round them once, to the dtype of the output."""
    product = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = product.astype(o_ref.dtype)


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (128, 128) bfloat16 matrices into a third."""
    return pl.pallas_call(broken_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)


def fixed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (128, 128) bfloat16 matrices into a third."""
    return pl.pallas_call(fixed_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)


def reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return two matrices of zeros and ones with sums up to 128, exact in bfloat16."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2, (128, 128)).astype(jnp.bfloat16) for _ in "xy")
    return (Case("zeros and ones", (x, y)),)
