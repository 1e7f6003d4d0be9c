"""An index map that returns where the block starts, instead of which block it is."""

import jax
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "NaN where numbers should be"
SYMPTOM = "some blocks right, others missing: two blocks would look almost right, four do not"
RULE = "An index map returns block indices; Pallas multiplies them by the block size."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "refused",
    "lower": "passed",
    "compile": "passed",
}


def double_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write twice the block. Nothing is wrong with the body."""
    o_ref[...] = 2 * x_ref[...]


def broken(x: jax.Array) -> jax.Array:
    """Double x, (32, 128) float32, with row offsets 0, 8, 16, 24 for block indices."""
    rows = pl.BlockSpec((8, 128), lambda i: (8 * i, 0))
    return pl.pallas_call(
        double_kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (32, 128) float32, with block indices 0, 1, 2, 3."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        double_kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return a matrix whose rows all differ."""
    return (Case("four blocks", (np.arange(32 * 128, dtype=np.float32).reshape(32, 128),)),)
