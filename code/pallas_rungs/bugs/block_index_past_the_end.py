"""Block index 1 on an axis that has one block."""

import jax
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "the compiler aborts, with a failed check, and takes its process with it"
RULE = "A block must start inside the array: an axis with one block has block index 0 alone."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "refused",
    "lower": "passed",
    "compile": "crashed",
}


def add_row_kernel(x_ref: jax.Ref, row_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add one row to every row of a block. Nothing is wrong with the body."""
    o_ref[...] = x_ref[...] + row_ref[...]


def broken(x: jax.Array, row: jax.Array) -> jax.Array:
    """Add row, (1, 256), to each row of x, (16, 256); the index map counts rows from 1."""
    block_ij = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        add_row_kernel,
        grid=(2, 2),
        in_specs=[block_ij, pl.BlockSpec((1, 128), lambda i, j: (1, j))],
        out_specs=block_ij,
        out_shape=jax.ShapeDtypeStruct((16, 256), x.dtype),
    )(x, row)


def fixed(x: jax.Array, row: jax.Array) -> jax.Array:
    """Add row, (1, 256), to each row of x, (16, 256); the only row is block 0."""
    block_ij = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        add_row_kernel,
        grid=(2, 2),
        in_specs=[block_ij, pl.BlockSpec((1, 128), lambda i, j: (0, j))],
        out_specs=block_ij,
        out_shape=jax.ShapeDtypeStruct((16, 256), x.dtype),
    )(x, row)


def reference(x: jax.Array, row: jax.Array) -> np.ndarray:
    """Return x + row in float64."""
    return np.asarray(x, np.float64) + np.asarray(row, np.float64)


def cases() -> tuple[Case, ...]:
    """Return a matrix and a row, all float32."""
    x = np.arange(16 * 256, dtype=np.float32).reshape(16, 256)
    row = 1000 * np.arange(256, dtype=np.float32)[None, :]
    return (Case("four blocks", (x, row)),)
