"""The kernels on a ring of devices: other sizes, other dtypes, planted faults, refusals.

They run in the simulator: the generic interpreter has no barrier semaphore.
"""

import inspect
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from pallas_rungs.kernels import all_gather_ring, reduce_scatter_ring, right_permute, ring
from pallas_rungs.kernels.all_gather_ring import all_gather_ring_reference
from pallas_rungs.kernels.case import BFLOAT16_RTOL
from pallas_rungs.kernels.reduce_scatter_ring import reduce_scatter_ring_reference
from pallas_rungs.kernels.right_permute import right_permute_reference
from pallas_rungs.kernels.ring import (
    check_shard,
    neighbours,
    over_the_ring,
    ring_size,
    wait_until_the_right_one_is_in,
)
from pallas_rungs.ladder import Report, climb

SIMULATOR = pltpu.InterpretParams()
BFLOAT16 = jnp.dtype(jnp.bfloat16)


def on(devices: int, call: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """The result in the simulator on that many devices, stacked."""
    got = over_the_ring(call, devices)(x, interpret=SIMULATOR)
    assert got.dtype == x.dtype
    return np.asarray(got).astype(np.float64)


def numbers(rows: int, columns: int, dtype: Any = np.float32) -> np.ndarray:
    return (10 * np.random.default_rng(7).standard_normal((rows, columns))).astype(dtype)


# Every size of ring


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_shares_move_one_place_on(devices: int) -> None:
    x = numbers(2 * devices, 130)
    want = np.roll(x, 2, axis=0)
    np.testing.assert_array_equal(on(devices, right_permute.right_permute, x), want)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_all_shares_are_gathered_in_order_on_every_device(devices: int) -> None:
    x = numbers(2 * devices, 130, BFLOAT16)
    want = np.tile(x.astype(np.float64), (devices, 1))
    np.testing.assert_array_equal(on(devices, all_gather_ring.all_gather_ring, x), want)


@pytest.mark.parametrize("devices", [1, 2, 3, 5, 8])
def test_sums_are_scattered(devices: int) -> None:
    x = numbers(devices * devices * 2, 130)
    each = x.astype(np.float64).reshape(devices, devices * 2, 130)
    got = on(devices, reduce_scatter_ring.reduce_scatter_ring, x)
    # One rounding an addition, of partial sums no larger than the sum of sizes.
    error = devices * 2.0**-24 * np.abs(each).sum(axis=0)
    np.testing.assert_array_less(np.abs(got - each.sum(axis=0)), error + 1e-30)


def test_partial_sums_are_kept_in_float32() -> None:
    x = numbers(4 * 4 * 8, 128, BFLOAT16)
    got = on(4, reduce_scatter_ring.reduce_scatter_ring, x)
    # Rounded to bfloat16 once, at the end; after each step it would be up to three times as far.
    np.testing.assert_allclose(got, reduce_scatter_ring_reference(x), rtol=BFLOAT16_RTOL, atol=1e-5)


# Against jax's own collectives, and the references against an independent computation


@pytest.mark.parametrize(
    ("by_jax", "reference", "rows"),
    [
        (
            lambda x: lax.ppermute(x, "ring", [(0, 1), (1, 2), (2, 3), (3, 0)]),
            right_permute_reference,
            4,
        ),
        (lambda x: lax.all_gather(x, "ring", tiled=True), all_gather_ring_reference, 4),
        (lambda x: lax.psum_scatter(x, "ring", tiled=True), reduce_scatter_ring_reference, 16),
    ],
)
def test_the_references_are_what_jax_does(by_jax: Any, reference: Any, rows: int) -> None:
    x = np.random.default_rng(1).integers(-99, 99, (rows * 2, 3)).astype(np.float32)
    mesh = jax.make_mesh((4,), ("ring",), axis_types=(jax.sharding.AxisType.Auto,))
    split = P("ring")
    want = jax.shard_map(by_jax, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)(x)
    got = reference(x)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, want)


# Who is next


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_neighbours_close_the_ring(devices: int) -> None:
    mesh = jax.make_mesh((devices,), ("ring",), axis_types=(jax.sharding.AxisType.Auto,))

    def both(x: jax.Array) -> jax.Array:
        left, right = neighbours("ring")
        assert list(left) == list(right) == ["ring"]
        return x + jnp.stack([left["ring"], right["ring"]])[None]

    split = P("ring")
    got = jax.shard_map(both, mesh=mesh, in_specs=split, out_specs=split)(
        jnp.zeros((devices, 2), jnp.int32)
    )
    want = [[(d - 1) % devices, (d + 1) % devices] for d in range(devices)]
    np.testing.assert_array_equal(got, want)


def test_on_a_mesh_of_two_axes_a_ring_stays_in_its_row() -> None:
    mesh = jax.make_mesh((2, 2), ("rows", "ring"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = numbers(2, 256)
    split = P("rows", "ring")

    def on_one(x: jax.Array) -> jax.Array:
        return right_permute.right_permute(x, "ring", interpret=SIMULATOR)

    got = jax.shard_map(on_one, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)(x)
    np.testing.assert_array_equal(got, np.roll(x, 128, axis=1))


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_the_handshake_has_a_wait_for_each_signal(devices: int) -> None:
    def only_meets(x_ref: Any, o_ref: Any) -> None:
        wait_until_the_right_one_is_in("ring")
        o_ref[...] = x_ref[...]

    def call(x: jax.Array, axis_name: str, *, interpret: Any) -> jax.Array:
        return pl.pallas_call(
            only_meets,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            compiler_params=pltpu.CompilerParams(collective_id=5),
            interpret=interpret,
        )(x)

    x = numbers(8 * devices, 128)
    report = climb(
        over_the_ring(call, devices), x, reference=lambda x: x, rungs=("simulate", "lower")
    )
    assert report.passed, report


# Planted faults, each seen by the simulator


def planted(module: types.ModuleType, *changes: tuple[str, str]) -> Report:
    """The report of a kernel with lines of its module exchanged."""
    source = inspect.getsource(module)
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    sick = types.ModuleType(module.__name__)
    exec(compile(source, "<planted>", "exec"), sick.__dict__)
    name = module.__name__.rpartition(".")[2]
    case = module.cases()[0]
    return climb(
        over_the_ring(getattr(sick, name), 4),
        *case.args,
        reference=getattr(module, f"{name}_reference"),
        rungs=("simulate",),
        rtol=case.rtol,
        atol=case.atol,
    )


GRANT = ("pl.semaphore_signal(credits, 1, device_id=left)", "pass")
TAKE = ("pl.semaphore_wait(credits, 1)", "pass")


@pytest.mark.parametrize(
    ("module", "changes", "found"),
    [
        (right_permute, [("copy.wait_recv()", "pass")], {"wrong"}),
        (right_permute, [("copy.wait_send()", "pass")], {"refused"}),
        (right_permute, [("copy.wait_recv()", "copy.wait_send()")], {"deadlocked"}),
        (reduce_scatter_ring, [GRANT, TAKE], {"refused"}),
        (reduce_scatter_ring, [TAKE], {"refused"}),
        (reduce_scatter_ring, [GRANT], {"deadlocked"}),
        (reduce_scatter_ring, [("device_id=left)", "device_id=right)")], {"refused"}),
        (reduce_scatter_ring, [("if 1 <= step <= devices - 3", "if 1 <= step")], {"refused"}),
        (all_gather_ring, [("own.wait()", "pass")], {"wrong", "refused"}),
    ],
    ids=lambda value: "" if isinstance(value, types.ModuleType | set) else str(value[0]),
)
def test_a_planted_fault_is_seen(module: Any, changes: Any, found: set[str]) -> None:
    report = planted(module, *changes)
    assert report.status("simulate", "races") in found, report


# On one device, as a caller in a ``shard_map`` has it


@pytest.mark.parametrize(
    "call",
    [
        right_permute.right_permute,
        all_gather_ring.all_gather_ring,
        reduce_scatter_ring.reduce_scatter_ring,
    ],
)
def test_a_call_is_for_the_chip_unless_told_otherwise(call: Any) -> None:
    assert inspect.signature(call).parameters["interpret"].default is False


# Refusals


def test_calls_outside_a_ring_are_refused() -> None:
    x = np.ones((8, 128), np.float32)
    for call in (
        right_permute.right_permute,
        all_gather_ring.all_gather_ring,
        reduce_scatter_ring.reduce_scatter_ring,
    ):
        with pytest.raises(ValueError, match=r"axis_name is 'wheel'.*call it inside jax.shard_map"):
            call(x, "wheel", interpret=SIMULATOR)
    with pytest.raises(ValueError, match='over a mesh with an axis "wheel"'):
        ring_size("wheel")


@pytest.mark.parametrize(
    "call",
    [
        right_permute.right_permute,
        all_gather_ring.all_gather_ring,
        reduce_scatter_ring.reduce_scatter_ring,
    ],
)
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((32, 128), np.float16), "the dtype of x is float16"),
        (np.ones((32,), np.float32), r"the shape of x is \(8,\), but the kernel takes matrices"),
        (np.ones((32, 0), np.float32), "at least one row and one column"),
    ],
)
def test_shares_that_do_not_fit(call: Any, x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        over_the_ring(call, 4)(x, interpret=SIMULATOR)


def test_rows_that_cannot_be_shared() -> None:
    with pytest.raises(
        ValueError, match=r"its 6 rows are shared among 4 devices: pad .* to 8 rows"
    ):
        over_the_ring(reduce_scatter_ring.reduce_scatter_ring, 4)(
            np.ones((24, 128), np.float32), interpret=SIMULATOR
        )


def test_integers_move_and_are_not_summed() -> None:
    x = np.arange(8 * 3, dtype=np.int32).reshape(8, 3)
    np.testing.assert_array_equal(on(4, right_permute.right_permute, x), np.roll(x, 2, axis=0))
    np.testing.assert_array_equal(on(4, all_gather_ring.all_gather_ring, x), np.tile(x, (4, 1)))
    with pytest.raises(ValueError, match="the dtype of x is int32"):
        over_the_ring(reduce_scatter_ring.reduce_scatter_ring, 4)(x, interpret=SIMULATOR)


def test_a_share_is_a_matrix() -> None:
    assert check_shard(np.ones((3, 5), np.float32)) == (3, 5)
    assert ring.AXIS == "ring"
