"""A loop that fetches one block ahead, also when there is none left to use it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case

GROUP = "hangs"
SYMPTOM = "the numbers are right; the kernel that runs next hangs, or the chip halts"
RULE = (
    "Every copy that was started is waited for, once: guard a prefetch with `if there is a next`."
)
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "refused",
    "lower": "passed",
    "compile": "passed",
}


def fetched(x_ref: jax.Ref, buffers: jax.Ref, arrived: jax.Ref, i: int) -> Any:
    """Return the copy of block i (of four, counted round and round) into one of two buffers."""
    block = x_ref.at[pl.ds(8 * (i % 4), 8)]
    return pltpu.make_async_copy(block, buffers.at[i % 2], arrived.at[i % 2])


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffers: jax.Ref, arrived: jax.Ref) -> None:
    """Double four blocks; while one is doubled the next is on its way, whether there is one."""
    fetched(x_ref, buffers, arrived, 0).start()
    for i in range(4):
        fetched(x_ref, buffers, arrived, i + 1).start()
        fetched(x_ref, buffers, arrived, i).wait()
        o_ref[pl.ds(8 * i, 8)] = 2 * buffers[i % 2]


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref, buffers: jax.Ref, arrived: jax.Ref) -> None:
    """Double four blocks; while one is doubled the next is on its way, if there is one."""
    fetched(x_ref, buffers, arrived, 0).start()
    for i in range(4):
        if i + 1 < 4:
            fetched(x_ref, buffers, arrived, i + 1).start()
        fetched(x_ref, buffers, arrived, i).wait()
        o_ref[pl.ds(8 * i, 8)] = 2 * buffers[i % 2]


def double(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels; x stays in HBM, from where the kernel copies."""
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
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
