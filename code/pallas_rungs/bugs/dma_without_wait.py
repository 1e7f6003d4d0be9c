"""A copy into scratch memory that is started, and read before it has been waited for."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "sometimes right and sometimes not: the copy and the read race"
RULE = "start() only begins a copy: its destination is undefined until wait() has returned."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, arrived: jax.Ref) -> None:
    """Copy x into the buffer, read the buffer, and only then wait for the copy."""
    copy = pltpu.make_async_copy(x_ref, buffer, arrived)
    copy.start()
    o_ref[...] = 2 * buffer[...]
    copy.wait()


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, arrived: jax.Ref) -> None:
    """Copy x into the buffer, wait for the copy, and then read the buffer."""
    copy = pltpu.make_async_copy(x_ref, buffer, arrived)
    copy.start()
    copy.wait()
    o_ref[...] = 2 * buffer[...]


def broken(x: jax.Array) -> jax.Array:
    """Double x, (8, 128) float32, by way of a buffer that the kernel fills itself."""
    return pl.pallas_call(
        broken_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (8, 128) float32, by way of a buffer that the kernel fills itself."""
    return pl.pallas_call(
        fixed_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return one small matrix without zeros."""
    return (Case("eight rows", (1 + np.arange(8 * 128, dtype=np.float32).reshape(8, 128),)),)
