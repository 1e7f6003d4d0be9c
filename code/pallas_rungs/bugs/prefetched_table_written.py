"""A kernel that changes the prefetched table from which its own index map reads."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "finite but wrong"
SYMPTOM = "blocks come from where the table pointed before the kernel wrote into it"
RULE = "Index maps run ahead of the kernel, nobody says how far: a prefetched table is read only."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(table_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Copy a block, and tell the table where the next program should read."""
    o_ref[...] = x_ref[...]
    table_ref[pl.program_id(0) + 1] = table_ref[pl.program_id(0)] + 2


def fixed_kernel(table_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Copy a block; the table was complete before the kernel began."""
    o_ref[...] = x_ref[...]


def gather(kernel: Callable[..., None], table: jax.Array, x: jax.Array) -> jax.Array:
    """Gather blocks of eight rows of x by the first four entries of the table."""
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, table_ref: (table_ref[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, table_ref: (i, 0)),
    )
    out_shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    return pl.pallas_call(kernel, grid_spec=grid_spec, out_shape=out_shape)(table, x)


def broken(start: jax.Array, x: jax.Array) -> jax.Array:
    """Take every other block of eight rows of x, (64, 128) float32, from start, (1,) int32, on."""
    return gather(broken_kernel, jnp.zeros(5, jnp.int32).at[0].set(start[0]), x)


def fixed(start: jax.Array, x: jax.Array) -> jax.Array:
    """Take every other block of eight rows of x, (64, 128) float32, from start, (1,) int32, on."""
    return gather(fixed_kernel, start[0] + 2 * jnp.arange(5, dtype=jnp.int32), x)


def reference(start: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the four blocks in float64."""
    blocks = np.asarray(x, np.float64).reshape(8, 8, 128)
    return blocks[int(start[0]) :: 2].reshape(32, 128)


def cases() -> tuple[Case, ...]:
    """Return a matrix of eight blocks, to be read from the first on."""
    x = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    return (Case("every other block", (np.array([0], np.int32), x)),)
