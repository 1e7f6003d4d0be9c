"""A gradient through a kernel that was given no derivative."""

import jax
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "error while tracing"
SYMPTOM = "the forward pass works; jax.grad says: Linearization failed to produce known values"
RULE = "pallas_call has no reverse derivative: a kernel gets its own with jax.custom_vjp."
FIRST_CAUGHT = "trace"
EXPECTED = {
    "trace": "refused",
    "interpret": "refused",
    "simulate": "refused",
    "lower": "refused",
    "compile": "refused",
}


def square_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Square each element."""
    o_ref[...] = x_ref[...] * x_ref[...]


def gradient_kernel(x_ref: jax.Ref, g_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Multiply the gradient that comes in by 2 * x."""
    o_ref[...] = 2 * x_ref[...] * g_ref[...]


def square(x: jax.Array) -> jax.Array:
    """Square x, (8, 128) float32."""
    return pl.pallas_call(square_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def broken(x: jax.Array) -> jax.Array:
    """Return the gradient of the sum of squares of x, (8, 128) float32."""
    return jax.grad(lambda x: square(x).sum())(x)


def fixed(x: jax.Array) -> jax.Array:
    """Return the gradient of the sum of squares of x, (8, 128) float32."""

    def backward(x: jax.Array, g: jax.Array) -> tuple[jax.Array]:
        out_shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return (pl.pallas_call(gradient_kernel, out_shape=out_shape)(x, g),)

    with_gradient = jax.custom_vjp(square)
    with_gradient.defvjp(lambda x: (square(x), x), backward)
    return jax.grad(lambda x: with_gradient(x).sum())(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return one small matrix."""
    return (Case("eight rows", (np.arange(8 * 128, dtype=np.float32).reshape(8, 128),)),)
