"""A float32 product that does not say with how many bits it is to be multiplied."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "agrees to six digits on a CPU; people report three or so on a chip"
RULE = "Default precision is the platform's choice: where digits count, ask for Precision.HIGHEST."
FIRST_CAUGHT = "none"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Multiply, at whatever precision comes."""
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...])


def fixed_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Multiply, with all bits of float32."""
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=lax.Precision.HIGHEST)


def product(kernel: Callable[..., None], x: jax.Array, y: jax.Array) -> jax.Array:
    """Call one of the kernels on whole matrices."""
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32))(x, y)


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (128, 128) float32 matrices."""
    return product(broken_kernel, x, y)


def fixed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (128, 128) float32 matrices."""
    return product(fixed_kernel, x, y)


def reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return two matrices of normal numbers."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((128, 128)).astype(np.float32) for _ in "xy")
    return (Case("normal numbers", (x, y), rtol=1e-5, atol=1e-4),)
