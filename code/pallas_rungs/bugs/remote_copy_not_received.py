"""A copy to another device, waited for as its sender and not as a receiver.

It takes two devices; on a CPU jax shows as many as ``jax_num_cpu_devices`` says when it starts.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "what comes from the other device is sometimes old, or nothing at all"
RULE = "wait_send says that my data has left; wait_recv that the other's has come: wait for both."
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "tool cannot",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def swap_begun(x_ref: jax.Ref, buffer: jax.Ref, sent: jax.Ref, received: jax.Ref) -> Any:
    """Wait until the other device is here, and begin to copy x into its buffer."""
    other = {"pair": 1 - lax.axis_index("pair")}
    both_here = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(both_here, device_id=other)
    pl.semaphore_wait(both_here, 1)
    copy = pltpu.make_async_remote_copy(x_ref, buffer, sent, received, device_id=other)
    copy.start()
    return copy


def broken_kernel(
    x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, sent: jax.Ref, received: jax.Ref
) -> None:
    """Send x, and read what the other device has sent once x has left."""
    copy = swap_begun(x_ref, buffer, sent, received)
    copy.wait_send()
    o_ref[...] = buffer[...]
    copy.wait_recv()


def fixed_kernel(
    x_ref: jax.Ref, o_ref: jax.Ref, buffer: jax.Ref, sent: jax.Ref, received: jax.Ref
) -> None:
    """Send x, and read what the other device has sent once that has come."""
    copy = swap_begun(x_ref, buffer, sent, received)
    copy.wait_send()
    copy.wait_recv()
    o_ref[...] = buffer[...]


def swap(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels on two devices, each with half of the rows of x."""
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[
            pltpu.VMEM((8, 128), jnp.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
        ],
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    mesh = jax.make_mesh((2,), ("pair",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = PartitionSpec("pair")
    return jax.shard_map(call, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False)(x)


def broken(x: jax.Array) -> jax.Array:
    """Swap the halves of x, (16, 128) float32, between two devices."""
    return swap(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Swap the halves of x, (16, 128) float32, between two devices."""
    return swap(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return x in float64 with its halves swapped."""
    return np.roll(np.asarray(x, np.float64), 8, axis=0)


def cases() -> tuple[Case, ...]:
    """Return a matrix of different numbers."""
    return (Case("two devices", (np.arange(16 * 128, dtype=np.float32).reshape(16, 128),)),)
