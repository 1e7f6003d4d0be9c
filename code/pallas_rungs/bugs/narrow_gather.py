"""One element picked out of each row, by `take_along_axis` with one index a row."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "it lowers; then: Not implemented: Multiple source vregs along gather dimension"
RULE = "A gather moves elements within one register: pick with a comparison to an iota, and a sum."
FIRST_CAUGHT = "compile"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "refused",
}


def broken_kernel(column_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Pick one column of each row by its number."""
    o_ref[...] = jnp.take_along_axis(x_ref[...], column_ref[...], axis=1)


def fixed_kernel(column_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Clear all columns but one of each row, and add them up."""
    here = lax.broadcasted_iota(jnp.int32, x_ref.shape, 1) == column_ref[...]
    o_ref[...] = jnp.where(here, x_ref[...], 0.0).sum(axis=1, keepdims=True)


def pick(kernel: Callable[..., None], column: jax.Array, x: jax.Array) -> jax.Array:
    """Call one of the kernels on whole arrays."""
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 1), jnp.float32))(column, x)


def broken(column: jax.Array, x: jax.Array) -> jax.Array:
    """Pick one column, (16, 1) int32, of each row of x, (16, 256) float32."""
    return pick(broken_kernel, column, x)


def fixed(column: jax.Array, x: jax.Array) -> jax.Array:
    """Pick one column, (16, 1) int32, of each row of x, (16, 256) float32."""
    return pick(fixed_kernel, column, x)


def reference(column: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the picked elements in float64."""
    return np.take_along_axis(np.asarray(x, np.float64), np.asarray(column), axis=1)


def cases() -> tuple[Case, ...]:
    """Return columns from both halves of the rows."""
    column = (37 * np.arange(16, dtype=np.int32) % 256)[:, None]
    return (Case("16 rows", (column, np.arange(16 * 256, dtype=np.float32).reshape(16, 256))),)
