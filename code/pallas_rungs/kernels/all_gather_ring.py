"""Each device of a ring collects what all of them hold, passing shares on to the right."""

import functools
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.ring import (
    check_shard,
    neighbours,
    ring_size,
    wait_until_the_right_one_is_in,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
DEVICES = 4
TOOL_CANNOT = ("interpret",)  # no barrier semaphore there


def all_gather_ring_kernel(
    x_ref: jax.Ref,
    o_ref: jax.Ref,
    kept: jax.Ref,
    sent: jax.Ref,
    received: jax.Ref,
    *,
    axis_name: str,
) -> None:
    """Fill the output, (devices, M, N), with every device's x, (M, N); each share has its place."""
    devices = lax.axis_size(axis_name)
    me = lax.axis_index(axis_name)
    _, right = neighbours(axis_name)
    wait_until_the_right_one_is_in(axis_name)

    own = pltpu.make_async_copy(x_ref, o_ref.at[me], kept)
    own.start()
    passed_on = []
    for step in range(devices - 1):
        owner = lax.rem(me + devices - step, devices)  # whose share goes on in this step
        copy = pltpu.make_async_remote_copy(
            src_ref=x_ref if step == 0 else o_ref.at[owner],
            dst_ref=o_ref.at[owner],
            # Semaphores of its own for each step: copies may overtake each other.
            send_sem=sent.at[step],
            recv_sem=received.at[step],
            device_id=right,
        )
        copy.start()
        copy.wait_recv()  # the share that the next step passes on has come from the left
        passed_on.append(copy)
    for copy in passed_on:
        copy.wait_send()
    own.wait()


def all_gather_ring(x: jax.Array, axis_name: str, *, interpret: Any = False) -> jax.Array:
    """Collect the x of all devices of an axis, inside ``jax.shard_map``.

    The same as ``jax.lax.all_gather(x, axis_name, tiled=True)``: devices - 1 steps, in each of
    which every device sends one share to its right neighbour.

    Args:
        x: This device's share, (M, N), float32, bfloat16 or int32.
        axis_name: The axis of the mesh that is the ring.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        The shares in the order of the axis, (devices * M, N), the same on every device.

    Raises:
        ValueError: x is no matrix of those dtypes, or the mesh has no such axis.
    """
    M, N = check_shard(x, ("float32", "bfloat16", "int32"))
    devices = ring_size(axis_name)
    steps = max(devices - 1, 1)
    gathered: jax.Array = pl.pallas_call(
        functools.partial(all_gather_ring_kernel, axis_name=axis_name),
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
        out_shape=jax.ShapeDtypeStruct((devices, M, N), x.dtype),
        scratch_shapes=[
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((steps,)),
            pltpu.SemaphoreType.DMA((steps,)),
        ],
        compiler_params=pltpu.CompilerParams(collective_id=1),
        interpret=interpret,
    )(x)
    return gathered.reshape(devices * M, N)


def all_gather_ring_reference(x: np.ndarray) -> np.ndarray:
    """Return what all DEVICES devices hold afterwards, stacked: all of x, that many times."""
    return np.tile(np.asarray(x, np.float64), (DEVICES, 1))


def cases() -> tuple[Case, ...]:
    """Return arrays that four devices share: whole tiles and not, one row each, each dtype."""
    rng = np.random.default_rng(0)

    def shared(M: int, N: int, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(100 * rng.standard_normal((DEVICES * M, N))).astype(dtype)

    # Nothing is computed, so nothing is rounded.
    return (
        Case("one tile each", (shared(8, 128),), 0.0, 0.0),
        Case("no whole tiles", (shared(5, 100),), 0.0, 0.0),
        Case("one element each", (shared(1, 1),), 0.0, 0.0),
        Case("bfloat16", (shared(16, 256, jax.numpy.bfloat16),), 0.0, 0.0),
    )
