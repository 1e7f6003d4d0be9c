"""A single number stored to vector memory."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "ValueError while lowering: Cannot store scalars to VMEM"
RULE = "VMEM takes vectors: a scalar result goes to SMEM, or is stored as a vector."
FIRST_CAUGHT = "lower"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "refused",
    "compile": "refused",
}


def sum_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write the sum of all elements to the only element of the output."""
    o_ref[0, 0] = jnp.sum(x_ref[...])


def broken(x: jax.Array) -> jax.Array:
    """Sum x, (8, 128) float32, into a (1, 1) output that is in VMEM, as outputs are."""
    return pl.pallas_call(sum_kernel, out_shape=jax.ShapeDtypeStruct((1, 1), jnp.float32))(x)


def fixed(x: jax.Array) -> jax.Array:
    """Sum x, (8, 128) float32, into a (1, 1) output in scalar memory."""
    return pl.pallas_call(
        sum_kernel,
        out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
        out_shape=jax.ShapeDtypeStruct((1, 1), jnp.float32),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the sum of all elements in float64, (1, 1)."""
    return np.asarray(x, np.float64).sum().reshape(1, 1)


def cases() -> tuple[Case, ...]:
    """Return a matrix whose sum is exact in float32."""
    return (Case("eight rows", (np.arange(8 * 128, dtype=np.float32).reshape(8, 128),)),)
