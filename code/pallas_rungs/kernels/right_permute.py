"""Each device of a ring sends what it holds to its right neighbour, HBM to HBM."""

import functools
from typing import Any

import jax
import numpy as np
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


def right_permute_kernel(
    x_ref: jax.Ref, o_ref: jax.Ref, sent: jax.Ref, received: jax.Ref, *, axis_name: str
) -> None:
    """Copy this device's x, (M, N), into the right neighbour's output."""
    _, right = neighbours(axis_name)
    wait_until_the_right_one_is_in(axis_name)
    copy = pltpu.make_async_remote_copy(
        src_ref=x_ref,  # on this device
        dst_ref=o_ref,  # on the device that device_id names
        send_sem=sent,  # on this device: counts what has been read from x_ref
        recv_sem=received,  # on the other device: counts what has been written to its o_ref
        device_id=right,
    )
    copy.start()
    copy.wait_send()  # x_ref has been read: it may be written again
    copy.wait_recv()  # the left neighbour's copy is in this device's o_ref


def right_permute(x: jax.Array, axis_name: str, *, interpret: Any = False) -> jax.Array:
    """Send this device's x to the right neighbour, inside ``jax.shard_map``.

    The same as ``jax.lax.ppermute(x, axis_name, [(i, (i + 1) % n) for i in range(n)])``.

    Args:
        x: This device's share, (M, N), float32, bfloat16 or int32.
        axis_name: The axis of the mesh that is the ring.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        The left neighbour's x, (M, N).

    Raises:
        ValueError: x is no matrix of those dtypes, or the mesh has no such axis.
    """
    check_shard(x, ("float32", "bfloat16", "int32"))
    ring_size(axis_name)
    return pl.pallas_call(
        functools.partial(right_permute_kernel, axis_name=axis_name),
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=interpret,
    )(x)


def right_permute_reference(x: np.ndarray) -> np.ndarray:
    """Return the shares of all DEVICES devices, stacked, after each has moved one place on."""
    shares = np.asarray(x, np.float64).reshape(DEVICES, -1, x.shape[1])
    return np.roll(shares, 1, axis=0).reshape(x.shape)


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
        Case("integers", (shared(8, 128, np.int32),), 0.0, 0.0),
        Case("bfloat16", (shared(16, 256, jax.numpy.bfloat16),), 0.0, 0.0),
    )
