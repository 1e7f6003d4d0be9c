"""An update in place whose later programs read blocks that earlier ones have overwritten."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "finite but wrong"
SYMPTOM = "right without input_output_aliases, wrong with it: one block is copied into all others"
RULE = "With an alias input and output are one array: a program may read what none has written yet."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def copy_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Copy a block."""
    o_ref[...] = x_ref[...]


def shift(x: jax.Array, aliases: dict[int, int]) -> jax.Array:
    """Move each of the four blocks one further, the last to the front."""
    return pl.pallas_call(
        copy_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: ((i + 3) % 4, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        input_output_aliases=aliases,
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Roll x, (32, 128) float32, by eight rows, in its own memory."""
    return shift(x, aliases={0: 0})


def fixed(x: jax.Array) -> jax.Array:
    """Roll x, (32, 128) float32, by eight rows, into memory of its own."""
    return shift(x, aliases={})


def reference(x: jax.Array) -> np.ndarray:
    """Return x rolled by eight rows, in float64."""
    return np.roll(np.asarray(x, np.float64), 8, axis=0)


def cases() -> tuple[Case, ...]:
    """Return a matrix of different numbers."""
    return (Case("four blocks", (np.arange(32 * 128, dtype=np.float32).reshape(32, 128),)),)
