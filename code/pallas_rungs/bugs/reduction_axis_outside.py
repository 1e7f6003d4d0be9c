"""A matrix product whose K axis is the slowest axis of the grid, not the fastest."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.matmul import matmul_kernel

GROUP = "wrong on the chip only"
SYMPTOM = "blocks of the output come back as undefined memory, or without some of their sums"
RULE = "An output block may be visited again only on the very next step: K is the last grid axis."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "refused",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add one product to the output block, for k on the first axis of the grid."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (256, 256) float32 matrices; each output block is left and revisited."""
    return pl.pallas_call(
        broken_kernel,
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda k, i, j: (i, k)),
            pl.BlockSpec((128, 128), lambda k, i, j: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda k, i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((256, 256), jnp.float32),
    )(x, y)


def fixed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply two (256, 256) float32 matrices; each output block is finished in one go."""
    return pl.pallas_call(
        matmul_kernel,
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((256, 256), jnp.float32),
    )(x, y)


def reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return two matrices of small integers, whose product is exact in float32."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 5, (2, 256, 256)).astype(np.float32)
    return (Case("two blocks on each axis", (x, y)),)
