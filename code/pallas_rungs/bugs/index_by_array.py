"""A gather written as NumPy and GPU kernels write it: a ref indexed by an array of rows."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "works on a GPU and with interpret=True; for a TPU: Cannot do int indexing on TPU"
RULE = "A TPU ref is indexed by scalars and slices: loop over the rows, with their numbers in SMEM."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "refused",
    "lower": "refused",
    "compile": "refused",
}


def broken_kernel(rows_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Read eight rows at once."""
    o_ref[...] = x_ref[rows_ref[...], :]


def fixed_kernel(rows_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Read eight rows, one after the other."""
    for i in range(8):
        o_ref[i, :] = x_ref[rows_ref[i], :]


def gather(
    kernel: Callable[..., None], memory: pltpu.MemorySpace, rows: jax.Array, x: jax.Array
) -> jax.Array:
    """Call one of the kernels, with the numbers of the rows in the memory that it wants."""
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=memory), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(rows, x)


def broken(rows: jax.Array, x: jax.Array) -> jax.Array:
    """Gather the rows, (8,) int32, of x, (64, 128) float32."""
    return gather(broken_kernel, pltpu.VMEM, rows, x)


def fixed(rows: jax.Array, x: jax.Array) -> jax.Array:
    """Gather the rows, (8,) int32, of x, (64, 128) float32."""
    return gather(fixed_kernel, pltpu.SMEM, rows, x)


def reference(rows: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the rows in float64."""
    return np.asarray(x, np.float64)[np.asarray(rows)]


def cases() -> tuple[Case, ...]:
    """Return eight rows in no order, one of them twice."""
    x = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    return (Case("eight rows", (np.array([5, 63, 0, 5, 17, 40, 8, 31], np.int32), x)),)
