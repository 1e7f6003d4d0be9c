"""A grid whose length was computed by `//`, so that the last, partial block is nobody's."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "NaN where numbers should be"
SYMPTOM = "the first 16 rows are right, the last 4 are NaN, or whatever lay there before"
RULE = "The grid covers the output: count blocks with pl.cdiv, never with //."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def double_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Double a block."""
    o_ref[...] = 2 * x_ref[...]


def double(x: jax.Array, blocks: int) -> jax.Array:
    """Double x in so many blocks of eight rows."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        double_kernel,
        grid=(blocks,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Double x, (20, 128) float32, in blocks of eight rows."""
    return double(x, blocks=x.shape[0] // 8)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (20, 128) float32, in blocks of eight rows."""
    return double(x, blocks=pl.cdiv(x.shape[0], 8))


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return a matrix whose rows are no multiple of eight."""
    return (Case("20 rows", (np.arange(20 * 128, dtype=np.float32).reshape(20, 128),)),)
