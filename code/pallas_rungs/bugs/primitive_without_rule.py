"""A running sum by jnp.cumsum, for which the TPU lowering has no rule."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "NotImplementedError while lowering: Unimplemented primitive ... cumsum"
RULE = "Each backend lowers the primitives it has a rule for; the interpreters evaluate them all."
FIRST_CAUGHT = "lower"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "refused",
    "compile": "refused",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write the running sum of each row."""
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write the running sum of each row, as a product with a triangle of ones."""
    row = lax.broadcasted_iota(jnp.int32, (128, 128), 0)
    column = lax.broadcasted_iota(jnp.int32, (128, 128), 1)
    up_to_here = (row <= column).astype(jnp.float32)
    o_ref[...] = jnp.dot(
        x_ref[...],
        up_to_here,
        precision=lax.Precision.HIGHEST,
        preferred_element_type=jnp.float32,
    )


def broken(x: jax.Array) -> jax.Array:
    """Return the running sums along the rows of x, (8, 128) float32."""
    return pl.pallas_call(broken_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def fixed(x: jax.Array) -> jax.Array:
    """Return the running sums along the rows of x, (8, 128) float32."""
    return pl.pallas_call(fixed_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the running sums along the rows in float64."""
    return np.cumsum(np.asarray(x, np.float64), axis=1)


def cases() -> tuple[Case, ...]:
    """Return a matrix of small integers, whose running sums are exact in float32."""
    x = np.random.default_rng(0).integers(-9, 10, (8, 128)).astype(np.float32)
    return (Case("eight rows", (x,)),)
