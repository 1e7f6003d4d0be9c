"""A promise of alignment, made to please the compiler, that the data do not keep."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "without pl.multiple_of it does not compile, with it the rows may come from elsewhere"
RULE = "pl.multiple_of is a promise that nobody checks: use it only on what you computed as k * 8."
FIRST_CAUGHT = "none"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(start_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref, wide: jax.Ref) -> None:
    """Copy 16 rows from a start that is called a multiple of 8, whatever it is."""
    start = pl.multiple_of(start_ref[0], 8)
    o_ref[...] = x_ref[pl.ds(start, 16), :]


def fixed_kernel(start_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref, wide: jax.Ref) -> None:
    """Copy 16 rows from any start, through scratch memory where every row has an address."""
    wide[...] = x_ref[...].astype(jnp.float32)
    o_ref[...] = wide[pl.ds(start_ref[0], 16), :].astype(o_ref.dtype)


def rows_from(kernel: Callable[..., None], start: jax.Array, x: jax.Array) -> jax.Array:
    """Call one of the kernels, with the start in SMEM."""
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((64, 128), jnp.float32)],
    )(start, x)


def broken(start: jax.Array, x: jax.Array) -> jax.Array:
    """Return 16 rows of x, (64, 128) bfloat16, from start, (1,) int32, on."""
    return rows_from(broken_kernel, start, x)


def fixed(start: jax.Array, x: jax.Array) -> jax.Array:
    """Return 16 rows of x, (64, 128) bfloat16, from start, (1,) int32, on."""
    return rows_from(fixed_kernel, start, x)


def reference(start: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the rows in float64."""
    return np.asarray(x, np.float64)[int(start[0]) : int(start[0]) + 16]


def cases() -> tuple[Case, ...]:
    """Return a start that is no multiple of 8."""
    x = (np.arange(64 * 128) % 251).reshape(64, 128).astype(jnp.bfloat16)
    return (Case("from row 13", (np.array([13], np.int32), x)),)
