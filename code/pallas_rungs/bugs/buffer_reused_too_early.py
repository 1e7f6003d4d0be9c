"""A buffer that is filled anew while the copy out of it is still under way."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "now and then a block of the result holds what belongs into the one after it"
RULE = "A buffer belongs to its copy until the copy was waited for, as source and as destination."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, sent: jax.Ref) -> None:
    """Double one block after the other in a single buffer; wait for all copies at the end."""
    copies = [
        pltpu.make_async_copy(buffer, o_ref.at[pl.ds(8 * i, 8)], sent.at[i]) for i in range(4)
    ]
    for i, copy in enumerate(copies):
        buffer[...] = 2 * x_ref[pl.ds(8 * i, 8)]
        copy.start()
    for copy in copies:
        copy.wait()


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, sent: jax.Ref) -> None:
    """Double one block after the other in a single buffer; wait for each copy before the next."""
    copies = [
        pltpu.make_async_copy(buffer, o_ref.at[pl.ds(8 * i, 8)], sent.at[i]) for i in range(4)
    ]
    for i, copy in enumerate(copies):
        buffer[...] = 2 * x_ref[pl.ds(8 * i, 8)]
        copy.start()
        copy.wait()


def double(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels; the output stays in HBM, where the kernel copies to."""
    return pl.pallas_call(
        kernel,
        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA((4,))],
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Double x, (32, 128) float32."""
    return double(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (32, 128) float32."""
    return double(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return a matrix of different numbers."""
    return (Case("four blocks", (np.arange(32 * 128, dtype=np.float32).reshape(32, 128),)),)
