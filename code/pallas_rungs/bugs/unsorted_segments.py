"""A sum of blocks by segment whose segments come in no order, so that outputs are revisited."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = (
    "right for sorted segments; for shuffled ones sums are lost, and interpret=True sees nothing"
)
RULE = "An output block may be visited again on the next step only: sort by what names the output."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "refused",
    "lower": "passed",
    "compile": "passed",
}


def sum_kernel(ids_ref: jax.Ref, first_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Begin a segment's sum with its first block, and add the others."""
    i = pl.program_id(0)

    @pl.when(first_ref[i] == 1)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def segment_sums(ids: jax.Array, x: jax.Array) -> jax.Array:
    """Add each block of eight rows of x to the block of the output that its id names."""
    first = ~jnp.tril(ids[:, None] == ids, -1).any(axis=1)
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(6,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, ids_ref, first_ref: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, ids_ref, first_ref: (ids_ref[i], 0)),
    )
    out_shape = jax.ShapeDtypeStruct((24, 128), jnp.float32)
    call = pl.pallas_call(sum_kernel, grid_spec=grid_spec, out_shape=out_shape)
    return call(ids, first.astype(jnp.int32), x)


def broken(ids: jax.Array, x: jax.Array) -> jax.Array:
    """Sum six blocks of x, (48, 128) float32, into three, as ids, (6,) int32, say."""
    return segment_sums(ids, x)


def fixed(ids: jax.Array, x: jax.Array) -> jax.Array:
    """Sum six blocks of x, (48, 128) float32, into three, as ids, (6,) int32, say."""
    order = jnp.argsort(ids)
    return segment_sums(ids[order], x.reshape(6, 8, 128)[order].reshape(48, 128))


def reference(ids: jax.Array, x: jax.Array) -> np.ndarray:
    """Return the three sums in float64."""
    sums = np.zeros((3, 8, 128))
    np.add.at(sums, np.asarray(ids), np.asarray(x, np.float64).reshape(6, 8, 128))
    return sums.reshape(24, 128)


def cases() -> tuple[Case, ...]:
    """Return ids that jump back and forth."""
    x = np.arange(48 * 128, dtype=np.float32).reshape(48, 128)
    return (Case("ids 0 2 1 0 2 1", (np.array([0, 2, 1, 0, 2, 1], np.int32), x)),)
