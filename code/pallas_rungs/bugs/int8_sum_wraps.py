"""A product of int8 matrices that is summed up in int8, where 128 becomes -128."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "finite but wrong"
SYMPTOM = "right for small inputs, nonsense for large ones: the sums wrap around at 127"
RULE = "A product has the dtype of its operands: ask for preferred_element_type=jnp.int32."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "refused",
    "compile": "refused",
}


def broken_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Multiply, and widen the sums when they are there."""
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...]).astype(jnp.int32)


def fixed_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Multiply, and sum in int32 from the start."""
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.int32)


def product(kernel: Callable[..., None], x: jax.Array, y: jax.Array) -> jax.Array:
    """Call one of the kernels on whole matrices."""
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.int32))(x, y)


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (128, 128) int8 matrices into an int32 one."""
    return product(broken_kernel, x, y)


def fixed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (128, 128) int8 matrices into an int32 one."""
    return product(fixed_kernel, x, y)


def reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64, which holds these integers exactly."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return matrices whose products leave int8."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, (128, 128)).astype(np.int8) for _ in "xy")
    return (Case("all of int8", (x, y)),)
