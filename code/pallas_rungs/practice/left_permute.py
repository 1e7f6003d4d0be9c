"""Exercise: send what each device of a ring holds to its left neighbour."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, climbs_on_devices, close_to

Kernel = Callable[[Any, Any, Any, Any], None]

DEVICES = 4


def left_permute(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Run ``kernel`` on each of four devices, the axis "ring" of a mesh.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, (8, 128) in VMEM, and the semaphores ``sent`` and
            ``received``. It may use the barrier semaphore.
        x: (32, 128), float32; device d holds rows 8 * d to 8 * d + 8.

    Returns:
        (32, 128): what the devices have put into their outputs.
    """
    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    on_one = pl.pallas_call(
        kernel,
        in_specs=[vmem],
        out_specs=vmem,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
        compiler_params=pltpu.CompilerParams(collective_id=10),
    )
    mesh = jax.make_mesh((DEVICES,), ("ring",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.sharding.PartitionSpec("ring")
    moved: jax.Array = jax.shard_map(
        on_one, mesh=mesh, in_specs=split, out_specs=split, check_vma=False
    )(x)
    return moved


def starter(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Keeps what it has."""
    o_ref[...] = x_ref[...]


def solution(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Tell the right neighbour, who writes here; hear from the left one; send, and wait twice."""
    me = lax.axis_index("ring")
    left, right = lax.rem(me + 3, 4), lax.rem(me + 1, 4)
    entered = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(entered, 1, device_id={"ring": right})
    pl.semaphore_wait(entered, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id={"ring": left})
    copy.start()
    copy.wait_send()
    copy.wait_recv()


def without_modulo(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: the left neighbour of device 0 is no device."""
    me = lax.axis_index("ring")
    entered = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(entered, 1, device_id={"ring": lax.rem(me + 1, 4)})
    pl.semaphore_wait(entered, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id={"ring": me - 1})
    copy.start()
    copy.wait()


def remainder_of_a_negative(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: ``lax.rem`` keeps the sign, so the remainder of -1 by 4 is -1."""
    me = lax.axis_index("ring")
    entered = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(entered, 1, device_id={"ring": lax.rem(me + 1, 4)})
    pl.semaphore_wait(entered, 1)
    left = {"ring": lax.rem(me - 1, 4)}
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=left)
    copy.start()
    copy.wait()


def waits_for_sending_twice(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: one copy is sent, so the second wait waits forever."""
    me = lax.axis_index("ring")
    entered = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(entered, 1, device_id={"ring": lax.rem(me + 1, 4)})
    pl.semaphore_wait(entered, 1)
    left = {"ring": lax.rem(me + 3, 4)}
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=left)
    copy.start()
    copy.wait_send()
    copy.wait_send()


def without_barrier(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: writes to a neighbour that may not have entered."""
    left = {"ring": lax.rem(lax.axis_index("ring") + 3, 4)}
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=left)
    copy.start()
    copy.wait()


def to_the_right(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: the other way round."""
    me = lax.axis_index("ring")
    entered = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(entered, 1, device_id={"ring": lax.rem(me + 3, 4)})
    pl.semaphore_wait(entered, 1)
    right = {"ring": lax.rem(me + 1, 4)}
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=right)
    copy.start()
    copy.wait()


WRONG: tuple[tuple[Kernel, str], ...] = (
    (without_modulo, "must be one of the mesh's"),
    (remainder_of_a_negative, "must be one of the mesh's"),
    (waits_for_sending_twice, "Hint: .*wait_send.* once, and wait_recv once"),
    (
        without_barrier,
        "collective_id has to be unspecified or None when not using a custom barrier",
    ),
    (to_the_right, "Hint: .* went to the right"),
)


def check(kernel: Kernel) -> Report:
    """Run ``kernel`` on four devices in the simulator, lower it, and insist that all is well.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, f32[8, 128], and two DMA semaphores.

    Returns:
        The report, when every rung passed.

    Raises:
        RuntimeError: jax has fewer than four devices.
        AssertionError: a rung did not pass; says why.
    """
    x = np.repeat(np.arange(DEVICES, dtype=np.float32), 8)[:, None] * np.ones((1, 128), np.float32)
    return climbs_on_devices(
        lambda x: left_permute(kernel, x),
        x,
        devices=DEVICES,
        reference=lambda x: np.roll(x, -8, axis=0),
        call=getattr(kernel, "__name__", "kernel"),
        hints=(
            Hint("the shares went to the right: whose output does device_id name?",
                 close_to(np.roll(x, 8, axis=0))),
            Hint("every device still has its own share: nothing was sent", close_to(x)),
        ),
        when_deadlocked="a copy that was started once is waited for with wait_send() once, and "
        "wait_recv once, each; and each signal of the barrier has one wait",
    )  # fmt: skip
