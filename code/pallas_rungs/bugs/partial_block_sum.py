"""A sum over columns whose last block reaches past the end of the array, without a mask."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "NaN where numbers should be"
SYMPTOM = "NaN in every row sum: the last block holds 44 columns of x and 84 of nothing"
RULE = "What lies past the end of an array in a partial block is not zero: mask before summing."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}

N = 300
bn = 128


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add the row sums of a block to every column of the output block."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.sum(x_ref[...], axis=1, keepdims=True)


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add the row sums of those columns of a block that the array has."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    x = x_ref[...]
    column = bn * pl.program_id(0) + lax.broadcasted_iota(jnp.int32, x.shape, 1)
    x = jnp.where(column < N, x, 0.0)  # a select: multiplying by 0 would keep the NaN
    o_ref[...] += jnp.sum(x, axis=1, keepdims=True)


def broken(x: jax.Array) -> jax.Array:
    """Sum the rows of x, (8, 300) float32; every column of the (8, 128) result is that sum."""
    return pl.pallas_call(
        broken_kernel,
        grid=(pl.cdiv(N, bn),),
        in_specs=[pl.BlockSpec((8, bn), lambda j: (0, j))],
        out_specs=pl.BlockSpec((8, 128), lambda j: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Sum the rows of x, (8, 300) float32; every column of the (8, 128) result is that sum."""
    return pl.pallas_call(
        fixed_kernel,
        grid=(pl.cdiv(N, bn),),
        in_specs=[pl.BlockSpec((8, bn), lambda j: (0, j))],
        out_specs=pl.BlockSpec((8, 128), lambda j: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the row sums in float64, repeated over 128 columns."""
    sums = np.asarray(x, np.float64).sum(axis=1, keepdims=True)
    return np.broadcast_to(sums, (8, 128))


def cases() -> tuple[Case, ...]:
    """Return a matrix whose row sums are exact in float32."""
    x = np.arange(8 * N, dtype=np.float32).reshape(8, N)
    return (Case("300 columns in blocks of 128", (x,)),)
