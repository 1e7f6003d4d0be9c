"""A kernel that waits once more than it has started copies."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "hangs"
SYMPTOM = "interpret=True is right; on a chip the call never comes back"
RULE = "A wait lasts until its semaphore is signalled: one wait for each copy that was started."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "deadlocked",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, arrived: jax.Ref) -> None:
    """Fetch x, wait for it, use it, and wait for it again to be sure."""
    copy = pltpu.make_async_copy(x_ref, buffer, arrived)
    copy.start()
    copy.wait()
    o_ref[...] = 2 * buffer[...]
    copy.wait()


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, arrived: jax.Ref) -> None:
    """Fetch x, wait for it, use it."""
    copy = pltpu.make_async_copy(x_ref, buffer, arrived)
    copy.start()
    copy.wait()
    o_ref[...] = 2 * buffer[...]


def double(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels; x stays in HBM, from where the kernel copies."""
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Double x, (8, 128) float32."""
    return double(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Double x, (8, 128) float32."""
    return double(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return 2 * x in float64."""
    return 2 * np.asarray(x, np.float64)


def cases() -> tuple[Case, ...]:
    """Return one small matrix."""
    return (Case("eight rows", (np.arange(8 * 128, dtype=np.float32).reshape(8, 128),)),)
