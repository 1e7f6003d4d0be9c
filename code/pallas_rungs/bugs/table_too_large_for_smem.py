"""A prefetched table with more entries than scalar memory has room for."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "works in tests; with a production table the compiler runs out of memory space smem"
RULE = "A prefetched table is in SMEM whole, about a million bytes: hand it over block by block."
FIRST_CAUGHT = "compile"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "refused",
}

ENTRIES = 2**19


def scale_kernel(table_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Scale a block of x by the entry of the table that belongs to this program."""
    o_ref[...] = table_ref[pl.program_id(0)] * x_ref[...]


def broken(table: jax.Array, x: jax.Array) -> jax.Array:
    """Scale the four blocks of x, (32, 128) float32, by the first entries of a long table."""
    rows = pl.BlockSpec((8, 128), lambda i, table_ref: (i, 0))
    return pl.pallas_call(
        scale_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(4,), in_specs=[rows], out_specs=rows
        ),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(table, x)


def fixed(table: jax.Array, x: jax.Array) -> jax.Array:
    """Scale the four blocks of x, (32, 128) float32, by the first entries of a long table."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    entries = pl.BlockSpec((1024,), lambda i: (0,), memory_space=pltpu.SMEM)
    return pl.pallas_call(
        scale_kernel,
        grid=(4,),
        in_specs=[entries, rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(table, x)


def reference(table: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the scaled blocks in float64."""
    factors = np.asarray(table, np.float64)[:4, None, None]
    return (factors * np.asarray(x, np.float64).reshape(4, 8, 128)).reshape(32, 128)


def cases() -> tuple[Case, ...]:
    """Return half a million entries, 2 MiB of float32."""
    table = np.arange(ENTRIES, dtype=np.float32)
    return (Case("2 MiB of table", (table, np.ones((32, 128), np.float32))),)
