"""An accumulator in scratch memory that is cleared once, and not once for every block of output."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "finite but wrong"
SYMPTOM = "the first block of rows is right, and each further one holds the sum of those before it"
RULE = "Scratch memory outlives a program: clear it where the inner axis begins, at k == 0."
FIRST_CAUGHT = "interpret"
EXPECTED = {
    "trace": "passed",
    "interpret": "wrong",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref, sums: jax.Ref) -> None:
    """Add up blocks along k; the sums are cleared by the very first program."""
    i, k = pl.program_id(0), pl.program_id(1)

    @pl.when((i == 0) & (k == 0))
    def _() -> None:
        sums[...] = jnp.zeros_like(sums)

    sums[...] += x_ref[...]
    o_ref[...] = sums[...]


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref, sums: jax.Ref) -> None:
    """Add up blocks along k; the sums are cleared wherever k begins anew."""
    k = pl.program_id(1)

    @pl.when(k == 0)
    def _() -> None:
        sums[...] = jnp.zeros_like(sums)

    sums[...] += x_ref[...]
    o_ref[...] = sums[...]


def block_sums(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Sum the three blocks of each row of blocks with one of the kernels."""
    return pl.pallas_call(
        kernel,
        grid=(2, 3),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (i, k))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Sum the three blocks of columns of x, (16, 384) float32."""
    return block_sums(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Sum the three blocks of columns of x, (16, 384) float32."""
    return block_sums(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the sum of the three blocks in float64."""
    return np.asarray(x, np.float64).reshape(16, 3, 128).sum(axis=1)


def cases() -> tuple[Case, ...]:
    """Return a matrix without zeros whose sums are exact in float32."""
    return (Case("two by three", (1 + np.arange(16 * 384, dtype=np.float32).reshape(16, 384),)),)
