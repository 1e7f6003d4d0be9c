"""A sum that accumulates in the output block and never clears it."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "NaN where numbers should be"
SYMPTOM = "NaN everywhere in the interpreters, leftovers of other work on a chip"
RULE = "Output and scratch memory starts out undefined: the first visit writes, the others add."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add a block to the output block, whatever that held before."""
    o_ref[...] += x_ref[...]


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Clear the output block on the first visit, then add a block to it."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def broken(x: jax.Array) -> jax.Array:
    """Sum the four blocks of eight rows of x, (32, 128) float32."""
    return pl.pallas_call(
        broken_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Sum the four blocks of eight rows of x, (32, 128) float32."""
    return pl.pallas_call(
        fixed_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the sum of the four blocks in float64."""
    return np.asarray(x, np.float64).reshape(4, 8, 128).sum(axis=0)


def cases() -> tuple[Case, ...]:
    """Return a matrix whose sums are exact in float32."""
    return (Case("four blocks", (np.arange(32 * 128, dtype=np.float32).reshape(32, 128),)),)
