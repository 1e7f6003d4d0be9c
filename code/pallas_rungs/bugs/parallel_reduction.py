"""A reduction axis that is declared parallel, which is a promise about the kernel.

Chips with two TensorCores may split a parallel axis between them, and two cores that add to one
output block overwrite each other's sums. With one core and the usual order nothing shows.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "right on a chip with one core, wrong sums on one with two"
RULE = (
    "A grid axis that carries an accumulator is 'arbitrary': only independent steps are parallel."
)
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "refused",
    "lower": "passed",
    "compile": "passed",
}


def sum_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Clear the output block on the first visit, then add a block to it: sound by itself."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def broken(x: jax.Array) -> jax.Array:
    """Sum the four blocks of eight rows of x, (32, 128) float32, in any order on any core."""
    return pl.pallas_call(
        sum_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Sum the four blocks of eight rows of x, (32, 128) float32, one after the other."""
    return pl.pallas_call(
        sum_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the sum of the four blocks in float64."""
    return np.asarray(x, np.float64).reshape(4, 8, 128).sum(axis=0)


def cases() -> tuple[Case, ...]:
    """Return a matrix whose sums are exact in float32."""
    return (Case("four blocks", (np.arange(32 * 128, dtype=np.float32).reshape(32, 128),)),)
