"""One row of a bfloat16 matrix, at a place that is known only when the kernel runs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "fine in float32; in bfloat16 the compiler cannot prove that the row is a multiple of 8"
RULE = "Types under 32 bits share rows of registers: address them by whole tiles, or widen first."
FIRST_CAUGHT = "compile"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "refused",
}


def broken_kernel(row_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Spread one row over the output."""
    o_ref[...] = jnp.broadcast_to(x_ref[pl.ds(row_ref[0], 1), :], o_ref.shape)


def fixed_kernel(row_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref, wide: jax.Ref) -> None:
    """Widen the matrix in scratch memory, where every row has an address, and spread one row."""
    wide[...] = x_ref[...].astype(jnp.float32)
    row = jnp.broadcast_to(wide[pl.ds(row_ref[0], 1), :], o_ref.shape)
    o_ref[...] = row.astype(o_ref.dtype)


def spread(
    kernel: Callable[..., None], row: jax.Array, x: jax.Array, scratch: list[Any]
) -> jax.Array:
    """Call one of the kernels, with the row's number in SMEM."""
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.bfloat16),
        scratch_shapes=scratch,
    )(row, x)


def broken(row: jax.Array, x: jax.Array) -> jax.Array:
    """Spread the row, (1,) int32, of x, (64, 128) bfloat16, over 16 rows."""
    return spread(broken_kernel, row, x, [])


def fixed(row: jax.Array, x: jax.Array) -> jax.Array:
    """Spread the row, (1,) int32, of x, (64, 128) bfloat16, over 16 rows."""
    return spread(fixed_kernel, row, x, [pltpu.VMEM((64, 128), jnp.float32)])


def reference(row: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the row in float64, sixteen times."""
    return np.broadcast_to(np.asarray(x, np.float64)[int(row[0])], (16, 128))


def cases() -> tuple[Case, ...]:
    """Return an odd row of small integers, exact in bfloat16."""
    x = (np.arange(64 * 128) % 251).reshape(64, 128).astype(jnp.bfloat16)
    return (Case("row 13", (np.array([13], np.int32), x)),)
