"""What kernels on a ring of devices share: who is next, and the handshake before the first copy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.checks import check_matrix, refusal

AXIS = "ring"
"""The mesh axis that the cases of the kernels run over."""


def neighbours(axis_name: str) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """Return the devices to the left and to the right along an axis of the mesh.

    An id names the axis and the place on it. On a mesh of several axes the others are left out:
    the neighbour has this device's own place on them.

    Args:
        axis_name: The axis. Its last device is the left neighbour of its first.

    Returns:
        The two device ids, each axis name → int32 place on the axis, for ``device_id``.
    """
    devices = lax.axis_size(axis_name)
    me = lax.axis_index(axis_name)
    # The modulo closes the ring; adding first keeps its operand from being negative.
    left = lax.rem(me + devices - 1, devices)
    right = lax.rem(me + 1, devices)
    return {axis_name: left}, {axis_name: right}


def wait_until_the_right_one_is_in(axis_name: str) -> None:
    """Return once the right neighbour has entered this kernel.

    A device that has not entered may still use, for something else, the memory that a copy from
    here would fill. Each device tells its left neighbour, who will write to it, and hears from its
    right neighbour, to whom it will write: one signal sent, one received, the semaphore back at 0.

    Args:
        axis_name: The axis of the ring. The kernel's compiler parameters name a ``collective_id``.
    """
    left, _ = neighbours(axis_name)
    entered = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(entered, 1, device_id=left)
    pl.semaphore_wait(entered, 1)


def check_shard(x: jax.Array, dtypes: tuple[str, ...] = ("float32", "bfloat16")) -> tuple[int, int]:
    """Check that one device's share is a matrix with elements, of one of the dtypes.

    Args:
        x: What one device holds, inside ``jax.shard_map``.
        dtypes: Names of the dtypes that the kernel is written for.

    Returns:
        Its rows and columns.

    Raises:
        ValueError: It is no such matrix.
    """
    return check_matrix("x", x, dtypes)


def ring_size(axis_name: str) -> int:
    """Return how many devices an axis of the mesh has.

    Args:
        axis_name: The axis.

    Raises:
        ValueError: The call is not inside ``jax.shard_map`` over that axis.
    """
    try:
        return int(lax.axis_size(axis_name))
    except NameError:
        raise refusal(
            "axis_name",
            repr(axis_name),
            "the kernel runs on each device of that axis of a mesh",
            f'call it inside jax.shard_map over a mesh with an axis "{axis_name}"',
        ) from None


def over_the_ring(call: Callable[..., jax.Array], devices: int) -> Callable[..., jax.Array]:
    """Return a function of one global array that runs a per-device call on a ring.

    Args:
        call: Takes one device's share and the axis name; also ``interpret``.
        devices: How many devices the ring has.

    Returns:
        A function ``(x, *, interpret=False)``. The first axis of x is split among the devices, and
        their results are stacked along the first axis.
    """

    def on_all(x: jax.Array, *, interpret: Any = False) -> jax.Array:
        mesh = jax.make_mesh((devices,), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))
        split = jax.sharding.PartitionSpec(AXIS)

        def on_one(x: jax.Array) -> jax.Array:
            return call(x, AXIS, interpret=interpret)

        over = jax.shard_map(on_one, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
        stacked: jax.Array = over(jnp.asarray(x))
        return stacked

    on_all.__name__, on_all.__module__ = call.__name__, call.__module__
    return on_all
