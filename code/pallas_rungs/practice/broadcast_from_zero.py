"""Exercise: pass what device 0 holds along a ring, until all devices have it."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.ring import neighbours, wait_until_the_right_one_is_in
from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, climbs_on_devices, close_to

Kernel = Callable[[Any, Any, Any, Any], None]

DEVICES = 4


def broadcast_from_zero(kernel: Kernel, x: jax.Array) -> jax.Array:
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
        compiler_params=pltpu.CompilerParams(collective_id=11),
    )
    mesh = jax.make_mesh((DEVICES,), ("ring",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.sharding.PartitionSpec("ring")
    moved: jax.Array = jax.shard_map(
        on_one, mesh=mesh, in_specs=split, out_specs=split, check_vma=False
    )(x)
    return moved


def starter(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Device 0 has it already. Now the others."""
    wait_until_the_right_one_is_in("ring")

    @pl.when(lax.axis_index("ring") == 0)
    def start() -> None:
        o_ref[...] = x_ref[...]


def solution(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """All but the first receive; all but the last send on, once they have it."""
    me = lax.axis_index("ring")
    _, right = neighbours("ring")
    wait_until_the_right_one_is_in("ring")
    copy = pltpu.make_async_remote_copy(o_ref, o_ref, sent, received, device_id=right)

    @pl.when(me == 0)
    def start() -> None:
        o_ref[...] = x_ref[...]

    @pl.when(me > 0)
    def receive() -> None:
        copy.wait_recv()

    @pl.when(me < 3)
    def send() -> None:
        copy.start()
        copy.wait_send()


def all_of_them_receive(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: nobody sends to device 0, and all others wait for it."""
    me = lax.axis_index("ring")
    _, right = neighbours("ring")
    wait_until_the_right_one_is_in("ring")
    copy = pltpu.make_async_remote_copy(o_ref, o_ref, sent, received, device_id=right)

    @pl.when(me == 0)
    def start() -> None:
        o_ref[...] = x_ref[...]

    copy.wait_recv()

    @pl.when(me < 3)
    def send() -> None:
        copy.start()
        copy.wait_send()


def the_last_one_sends_too(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: device 0 is written to, and does not wait for it. The simulator may not notice."""
    me = lax.axis_index("ring")
    _, right = neighbours("ring")
    wait_until_the_right_one_is_in("ring")
    copy = pltpu.make_async_remote_copy(o_ref, o_ref, sent, received, device_id=right)

    @pl.when(me == 0)
    def start() -> None:
        o_ref[...] = x_ref[...]

    @pl.when(me > 0)
    def receive() -> None:
        copy.wait_recv()

    copy.start()
    copy.wait_send()


def sends_its_own(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: passes on what it had, not what it got."""
    me = lax.axis_index("ring")
    _, right = neighbours("ring")
    wait_until_the_right_one_is_in("ring")
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=right)

    @pl.when(me == 0)
    def start() -> None:
        o_ref[...] = x_ref[...]

    @pl.when(me < 3)
    def send() -> None:
        copy.start()
        copy.wait_send()

    @pl.when(me > 0)
    def receive() -> None:
        copy.wait_recv()


def sends_before_it_has_received(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
    """Wrong: passes on a buffer into which the copy has not come yet."""
    me = lax.axis_index("ring")
    _, right = neighbours("ring")
    wait_until_the_right_one_is_in("ring")
    copy = pltpu.make_async_remote_copy(o_ref, o_ref, sent, received, device_id=right)

    @pl.when(me == 0)
    def start() -> None:
        o_ref[...] = x_ref[...]

    @pl.when(me < 3)
    def send() -> None:
        copy.start()
        copy.wait_send()

    @pl.when(me > 0)
    def receive() -> None:
        copy.wait_recv()


WRONG: tuple[tuple[Kernel, str], ...] = (
    (all_of_them_receive, "Hint: .*device 0 receives nothing"),
    (sends_its_own, "Hint: .*its own share"),
    (sends_before_it_has_received, "RACE DETECTED"),
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
    own = np.maximum(x - 1, 0)
    return climbs_on_devices(
        lambda x: broadcast_from_zero(kernel, x),
        x,
        devices=DEVICES,
        reference=lambda x: np.tile(x[:8], (DEVICES, 1)),
        call=getattr(kernel, "__name__", "kernel"),
        hints=(
            Hint("a device passes on its own share: the source of its copy is what it received",
                 close_to(own)),
            Hint("an output that nobody wrote holds NaN: who sends to that device?",
                 lambda got, want: bool(np.isnan(got).any())),
        ),
        when_deadlocked="device 0 receives nothing, and device 3 sends nothing: neither may wait "
        "for what it has no part in (pl.when)",
    )  # fmt: skip
