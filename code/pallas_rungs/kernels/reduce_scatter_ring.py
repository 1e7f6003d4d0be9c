"""Each device of a ring ends with its share of a sum over all devices, in two slots and credits."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import refusal
from pallas_rungs.kernels.ring import (
    check_shard,
    neighbours,
    ring_size,
    wait_until_the_right_one_is_in,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
DEVICES = 4
TOOL_CANNOT = ("interpret",)  # no barrier semaphore there


def reduce_scatter_ring_kernel(
    x_ref: jax.Ref,
    o_ref: jax.Ref,
    outgoing: jax.Ref,
    slots: jax.Ref,
    sent: jax.Ref,
    received: jax.Ref,
    credits: jax.Ref,
    *,
    axis_name: str,
) -> None:
    """Write the sum over all devices of their x[me]; x is (devices, M, N), sums are float32."""
    devices = lax.axis_size(axis_name)
    me = lax.axis_index(axis_name)
    left, right = neighbours(axis_name)
    wait_until_the_right_one_is_in(axis_name)

    copy = None
    for step in range(devices - 1):
        # A sum for device d starts at d's right neighbour and ends at d, one step a device.
        owner = lax.rem(me + 2 * devices - 1 - step, devices)
        part = x_ref[owner].astype(jnp.float32)
        if copy is not None:
            copy.wait_recv()  # the left neighbour's partial sum is in the slot
            copy.wait_send()  # and mine has been read: outgoing may be written
            part += slots[(step - 1) % 2]
        outgoing[...] = part
        # The left neighbour fills the slot that was just read two steps after it filled it
        # first: it is told when that may be, unless there is no such step.
        if 1 <= step <= devices - 3:
            pl.semaphore_signal(credits, 1, device_id=left)
        if step >= 2:
            pl.semaphore_wait(credits, 1)
        copy = pltpu.make_async_remote_copy(
            src_ref=outgoing,
            dst_ref=slots.at[step % 2],
            send_sem=sent,
            recv_sem=received.at[step % 2],
            device_id=right,
        )
        copy.start()

    total = x_ref[me].astype(jnp.float32)
    if copy is not None:
        copy.wait_recv()
        copy.wait_send()
        total += slots[devices % 2]  # the slot of step devices - 2
    o_ref[...] = total.astype(o_ref.dtype)


def reduce_scatter_ring(x: jax.Array, axis_name: str, *, interpret: Any = False) -> jax.Array:
    """Add the x of all devices of an axis, and keep this device's share, in ``jax.shard_map``.

    The same as ``jax.lax.psum_scatter(x, axis_name, tiled=True)``: devices - 1 steps, in each of
    which every device sends one partial sum to its right neighbour, in float32. x, the result and
    three partial sums are in VMEM at once.

    Args:
        x: What this device adds, (devices * M, N), float32 or bfloat16.
        axis_name: The axis of the mesh that is the ring.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        Rows me * M to me * M + M of the sum, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, its rows cannot be shared among the devices,
            or the mesh has no such axis.
    """
    rows, N = check_shard(x)
    devices = ring_size(axis_name)
    if rows % devices:
        raise refusal(
            "the shape of x",
            x.shape,
            f"its {rows} rows are shared among {devices} devices",
            f"pad it with zeros to {-(-rows // devices) * devices} rows",
        )
    M = rows // devices
    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    return pl.pallas_call(
        functools.partial(reduce_scatter_ring_kernel, axis_name=axis_name),
        in_specs=[vmem],
        out_specs=vmem,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        scratch_shapes=[
            pltpu.VMEM((M, N), jnp.float32),
            pltpu.VMEM((2, M, N), jnp.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.REGULAR,
        ],
        compiler_params=pltpu.CompilerParams(collective_id=2),
        interpret=interpret,
    )(x.reshape(devices, M, N))


def reduce_scatter_ring_reference(x: np.ndarray) -> np.ndarray:
    """Return the shares of all DEVICES devices, stacked: the sum of the arrays stacked in x."""
    each = np.asarray(x, np.float64).reshape(DEVICES, -1, x.shape[1])
    return np.asarray(each.sum(axis=0))


def cases() -> tuple[Case, ...]:
    """Return arrays of four devices, stacked: whole tiles and not, one row a share, each dtype."""
    rng = np.random.default_rng(0)

    def stacked(M: int, N: int, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(rng.standard_normal((DEVICES * DEVICES * M, N))).astype(dtype)

    # Three additions of numbers below 8 in float32: each rounds by at most 2**-22.
    atol = 3 * 2.0**-22
    return (
        Case("one tile a share", (stacked(8, 128),), 0.0, atol),
        Case("no whole tiles", (stacked(5, 100),), 0.0, atol),
        Case("one element a share", (stacked(1, 1),), 0.0, atol),
        Case(
            "bfloat16",
            (stacked(16, 256, jnp.bfloat16),),
            BFLOAT16_RTOL,
            atol,
            note="float32 sums, rounded once",
        ),
    )
