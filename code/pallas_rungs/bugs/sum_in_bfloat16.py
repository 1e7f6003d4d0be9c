"""A product whose partial sums are rounded to bfloat16, the output's type, 16 times over."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "finite but wrong"
SYMPTOM = "passes with the tolerance that bfloat16 is usually given; training drifts"
RULE = "Accumulate in float32 and round once: a tolerance for one rounding hides sixteen."
FIRST_CAUGHT = "none"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Add one block's product to the output block, which is bfloat16."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    product = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = (o_ref[...] + product).astype(o_ref.dtype)


def fixed_kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref, sums: jax.Ref) -> None:
    """Add one block's product to float32 sums, and round them when they are complete."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        sums[...] = jnp.zeros_like(sums)

    sums[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = sums[...].astype(o_ref.dtype)


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply (16, 2048) by (2048, 128), bfloat16, in 16 blocks of K."""
    return pl.pallas_call(
        broken_kernel,
        grid=(16,),
        in_specs=[
            pl.BlockSpec((16, 128), lambda k: (0, k)),
            pl.BlockSpec((128, 128), lambda k: (k, 0)),
        ],
        out_specs=pl.BlockSpec((16, 128), lambda k: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.bfloat16),
    )(x, y)


def fixed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply (16, 2048) by (2048, 128), bfloat16, in 16 blocks of K."""
    return pl.pallas_call(
        fixed_kernel,
        grid=(16,),
        in_specs=[
            pl.BlockSpec((16, 128), lambda k: (0, k)),
            pl.BlockSpec((128, 128), lambda k: (k, 0)),
        ],
        out_specs=pl.BlockSpec((16, 128), lambda k: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)],
    )(x, y)


def reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return matrices of numbers from 0 to 1, whose sums all grow, with a usual tolerance."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(16, 2048)).astype(jnp.bfloat16)
    y = rng.uniform(size=(2048, 128)).astype(jnp.bfloat16)
    return (Case("K of 2048", (x, y), rtol=3e-2, atol=0.0),)
