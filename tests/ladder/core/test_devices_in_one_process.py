"""What the tools lack for kernels that talk to other devices, and meshes of two axes."""

import importlib.util

import jax
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from pallas_rungs.ladder import Status, climb
from pallas_rungs.ladder.program import trace

COMPILES = importlib.util.find_spec("libtpu") is not None
X = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)


def swaps(axes=("ring",), *, signal=False, array=False):
    """Two devices of the axis "ring" swap halves, each with what the interpreter lacks, or not."""

    def kernel(x_ref, o_ref, sent, received, credit):
        other = {"ring": 1 - lax.axis_index("ring")}
        if signal:
            pl.semaphore_signal(credit, 1, device_id=other)
            pl.semaphore_wait(credit, 1)
        semaphores = (sent.at[0], received.at[0]) if array else (sent, received)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, *semaphores, device_id=other)
        copy.start()
        copy.wait()

    hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    dma = pltpu.SemaphoreType.DMA((1,)) if array else pltpu.SemaphoreType.DMA
    call = pl.pallas_call(
        kernel,
        in_specs=[hbm],
        out_specs=hbm,
        scratch_shapes=[dma, dma, pltpu.SemaphoreType.REGULAR],
        out_shape=jax.ShapeDtypeStruct((8, 128), np.float32),
    )
    kinds = (jax.sharding.AxisType.Auto,) * len(axes)
    mesh = jax.make_mesh((2,) * len(axes), axes, axis_types=kinds)
    split = P("ring")
    return jax.shard_map(call, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)


def judged(function, *rungs):
    return climb(function, X, reference=lambda x: np.roll(x, 8, axis=0), rungs=rungs, name="swap")


def test_the_plain_swap_passes_in_both_interpreters():
    assert judged(swaps(), "interpret", "simulate").passed


@pytest.mark.parametrize(
    ("function", "gap"),
    [
        (lambda: swaps(signal=True), "signals no semaphore of another device"),
        (lambda: swaps(array=True), "on one semaphore of an array"),
        (lambda: swaps(("rows", "ring")), "on meshes of one axis only"),
    ],
    ids=["signal", "array", "mesh"],
)
def test_what_the_interpreter_lacks_is_laid_at_its_door(function, gap):
    report = judged(function(), "interpret", "simulate")
    verdict = report.of("interpret")
    assert verdict.status is Status.TOOL_CANNOT
    assert verdict.observed is Status.REFUSED
    assert gap in verdict.summary
    assert not verdict.error.advice  # what to do about a fault that the kernel does not have
    assert {v.status for v in report.verdicts if v.rung == "simulate"} == {Status.PASSED}


def test_features_of_other_devices_are_read_off():
    def features(function):
        found = trace(function, (X,)).features
        return found.remote_copies, found.remote_signals, found.semaphore_views

    assert features(swaps()) == (True, False, False)
    assert features(swaps(signal=True)) == (True, True, False)
    assert features(swaps(array=True)) == (True, False, True)


@pytest.mark.skipif(not COMPILES, reason="there is no libtpu here")
def test_a_mesh_of_two_axes_compiles():
    both = jax.make_mesh((2, 2), ("rows", "ring"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + lax.axis_index("ring")

    def call(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    split = P("rows", "ring")
    function = jax.shard_map(call, mesh=both, in_specs=split, out_specs=split, check_vma=False)
    report = climb(function, np.ones((16, 256), np.float32), rungs=["compile"])
    assert report.passed, report
    assert report.of("compile").details["analysis"]["devices"] == 4
