"""A causal mask that counts rows and columns from the corner of the block, not of the matrix."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "finite but wrong"
SYMPTOM = "right while the matrix is one block, wrong above and below the diagonal beyond that"
RULE = "An iota counts within the block: add the block's place, program_id times its size."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}

BLOCK = 128


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Clear what lies above the diagonal of the block."""
    row = lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
    column = lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    o_ref[...] = jnp.where(column <= row, x_ref[...], 0.0)


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Clear what lies above the diagonal of the matrix."""
    row = BLOCK * pl.program_id(0) + lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
    column = BLOCK * pl.program_id(1) + lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    o_ref[...] = jnp.where(column <= row, x_ref[...], 0.0)


def masked(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels on square blocks of x."""
    square = pl.BlockSpec((BLOCK, BLOCK), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // BLOCK, x.shape[1] // BLOCK),
        in_specs=[square],
        out_specs=square,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Clear what lies above the diagonal of x, (256, 256) float32."""
    return masked(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Clear what lies above the diagonal of x, (256, 256) float32."""
    return masked(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the lower triangle of x in float64."""
    return np.tril(np.asarray(x, np.float64))


def cases() -> tuple[Case, ...]:
    """Return a matrix without zeros, two blocks wide and high."""
    x = 1 + np.arange(256 * 256, dtype=np.float32).reshape(256, 256)
    return (Case("two blocks by two", (x,)),)
