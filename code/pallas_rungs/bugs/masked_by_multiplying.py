"""A sum whose overhang is masked by multiplying it with zero."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.bugs.partial_block_sum import N, bn, reference
from pallas_rungs.kernels.case import Case

__all__ = ["broken", "cases", "fixed", "reference"]

GROUP = "NaN where numbers should be"
SYMPTOM = "right with interpret=True and in the simulator; NaN where nobody simplifies x * mask"
RULE = "Zero times NaN is NaN: mask with jnp.where, which selects, and never by multiplying."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "passed",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add the row sums of a block, with the columns past the end multiplied by zero."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    x = x_ref[...]
    column = bn * pl.program_id(0) + lax.broadcasted_iota(jnp.int32, x.shape, 1)
    mask = (column < N).astype(x.dtype)
    o_ref[...] += jnp.sum(x * mask, axis=1, keepdims=True)


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add the row sums of a block, with zeros selected for the columns past the end."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    x = x_ref[...]
    column = bn * pl.program_id(0) + lax.broadcasted_iota(jnp.int32, x.shape, 1)
    o_ref[...] += jnp.sum(jnp.where(column < N, x, 0.0), axis=1, keepdims=True)


def row_sums(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels on the three blocks of x, the last of them partial."""
    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(N, bn),),
        in_specs=[pl.BlockSpec((8, bn), lambda j: (0, j))],
        out_specs=pl.BlockSpec((8, 128), lambda j: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Sum the rows of x, (8, 300) float32; every column of the (8, 128) result is that sum."""
    return row_sums(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Sum the rows of x, (8, 300) float32; every column of the (8, 128) result is that sum."""
    return row_sums(fixed_kernel, x)


def cases() -> tuple[Case, ...]:
    """Return a matrix whose row sums are exact in float32."""
    x = np.arange(8 * N, dtype=np.float32).reshape(8, N)
    return (Case("300 columns in blocks of 128", (x,)),)
