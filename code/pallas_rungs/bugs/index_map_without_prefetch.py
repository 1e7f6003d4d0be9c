"""An index map that takes the grid index only, in a call that prefetches a table."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "error while tracing"
SYMPTOM = "TypeError: <lambda>() takes 1 positional argument but 2 were given"
RULE = "Every index map takes the grid indices and then every prefetched ref, used or not."
FIRST_CAUGHT = "trace"
EXPECTED = {
    "trace": "refused",
    "interpret": "refused",
    "simulate": "refused",
    "lower": "refused",
    "compile": "refused",
}


def gather_kernel(table_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Copy the block of x that the table names for this program."""
    o_ref[...] = x_ref[...]


def gather(table: jax.Array, x: jax.Array, out_map: Callable[..., Any]) -> jax.Array:
    """Gather four blocks of eight rows; `out_map` is the index map of the output."""
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, table_ref: (table_ref[i], 0))],
        out_specs=pl.BlockSpec((8, 128), out_map),
    )
    out_shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    return pl.pallas_call(gather_kernel, grid_spec=grid_spec, out_shape=out_shape)(table, x)


def broken(table: jax.Array, x: jax.Array) -> jax.Array:
    """Gather blocks of eight rows of x, (32, 128) float32, by table, (4,) int32."""
    return gather(table, x, lambda i: (i, 0))


def fixed(table: jax.Array, x: jax.Array) -> jax.Array:
    """Gather blocks of eight rows of x, (32, 128) float32, by table, (4,) int32."""
    return gather(table, x, lambda i, table_ref: (i, 0))


def reference(table: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the gathered blocks in float64."""
    return np.asarray(x, np.float64).reshape(4, 8, 128)[np.asarray(table)].reshape(32, 128)


def cases() -> tuple[Case, ...]:
    """Return a table that reverses the blocks."""
    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    return (Case("blocks reversed", (np.array([3, 2, 1, 0], np.int32), x)),)
