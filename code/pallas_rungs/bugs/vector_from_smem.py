"""A whole row of factors that was put into SMEM, the memory of scalars."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "both interpreters agree with NumPy; lowering says: Can only load scalars from SMEM"
RULE = "SMEM is read one number at a time, by the scalar core: what vectors work on is in VMEM."
FIRST_CAUGHT = "lower"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "refused",
    "compile": "refused",
}


def scale_kernel(factors_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Scale each column of x by its factor."""
    o_ref[...] = x_ref[...] * factors_ref[...]


def scale(factors: jax.Array, x: jax.Array, memory: pltpu.MemorySpace) -> jax.Array:
    """Call the kernel with the factors in one of the memories."""
    return pl.pallas_call(
        scale_kernel,
        in_specs=[pl.BlockSpec(memory_space=memory), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(factors, x)


def broken(factors: jax.Array, x: jax.Array) -> jax.Array:
    """Scale the columns of x, (8, 128) float32, by factors, (1, 128) float32."""
    return scale(factors, x, memory=pltpu.SMEM)


def fixed(factors: jax.Array, x: jax.Array) -> jax.Array:
    """Scale the columns of x, (8, 128) float32, by factors, (1, 128) float32."""
    return scale(factors, x, memory=pltpu.VMEM)


def reference(factors: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the scaled columns in float64."""
    return np.asarray(factors, np.float64) * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return factors and a matrix of small integers."""
    factors = np.arange(128, dtype=np.float32)[None, :]
    return (Case("eight rows", (factors, np.arange(8 * 128, dtype=np.float32).reshape(8, 128))),)
