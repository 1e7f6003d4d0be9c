"""A masked softmax in which some rows have nothing left to attend to."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "NaN where numbers should be"
SYMPTOM = "NaN in the last rows, the padding of a short sequence; the others are right"
RULE = "Mask with a large finite number: -inf minus a row's maximum of -inf is NaN."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}

ROWS = 12
"""How many of the 16 rows are real, each with all 128 columns; a row after them has none."""


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Softmax along rows, with minus infinity where there is nothing."""
    seen = lax.broadcasted_iota(jnp.int32, x_ref.shape, 0) < ROWS
    x = jnp.where(seen, x_ref[...], -jnp.inf)
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    o_ref[...] = e / e.sum(axis=1, keepdims=True)


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Softmax along rows, with zeros where there is nothing."""
    seen = lax.broadcasted_iota(jnp.int32, x_ref.shape, 0) < ROWS
    x = jnp.where(seen, x_ref[...], -1e30)
    e = jnp.where(seen, jnp.exp(x - x.max(axis=1, keepdims=True)), 0.0)
    o_ref[...] = e / jnp.maximum(e.sum(axis=1, keepdims=True), 1e-30)


def softmax(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels on x as a whole."""
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def broken(x: jax.Array) -> jax.Array:
    """Return the softmax of the real rows of x, (16, 128) float32, and zeros after them."""
    return softmax(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Return the softmax of the real rows of x, (16, 128) float32, and zeros after them."""
    return softmax(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the same in float64."""
    e = np.exp(np.asarray(x, np.float64))
    e[ROWS:] = 0.0
    return e / np.maximum(e.sum(axis=1, keepdims=True), 1e-300)


def cases() -> tuple[Case, ...]:
    """Return scores from -2 to 2."""
    x = np.random.default_rng(0).uniform(-2, 2, (16, 128)).astype(np.float32)
    return (Case("12 rows of 16", (x,), rtol=1e-5, atol=1e-7),)
