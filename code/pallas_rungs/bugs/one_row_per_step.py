"""A grid over single rows, with blocks that a TPU cannot cut."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "ValueError while lowering: the last two dimensions ... are divisible by 8 and 128"
RULE = "The last two axes of a block are multiples of 8 and 128, or the whole axis."
FIRST_CAUGHT = "lower"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "refused",
    "compile": "refused",
}


def shift_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Subtract the largest element of each row. Nothing is wrong with the body."""
    o_ref[...] = x_ref[...] - jnp.max(x_ref[...], axis=1, keepdims=True)


def broken(x: jax.Array) -> jax.Array:
    """Shift the rows of x, (16, 256) float32, one row per program."""
    row = pl.BlockSpec((1, 256), lambda i: (i, 0))
    return pl.pallas_call(
        shift_kernel,
        grid=(16,),
        in_specs=[row],
        out_specs=row,
        out_shape=jax.ShapeDtypeStruct((16, 256), x.dtype),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Shift the rows of x, (16, 256) float32, eight rows per program."""
    rows = pl.BlockSpec((8, 256), lambda i: (i, 0))
    return pl.pallas_call(
        shift_kernel,
        grid=(2,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((16, 256), x.dtype),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return x less the largest element of each row, in float64."""
    x64 = np.asarray(x, np.float64)
    return np.asarray(x64 - x64.max(axis=1, keepdims=True))


def cases() -> tuple[Case, ...]:
    """Return a matrix of small integers."""
    x = np.random.default_rng(0).integers(-100, 100, (16, 256)).astype(np.float32)
    return (Case("sixteen rows", (x,)),)
