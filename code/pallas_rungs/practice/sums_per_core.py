"""Exercise: two cores of a chip sum the columns of one half of an array each."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import climb

Kernel = Callable[[Any, Any, Any, Any, Any], None]

CORES = 2
SHARE = 16


def sums_per_core(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Run ``kernel`` once on each of two cores.

    Args:
        kernel: takes ``x_ref``, (32, 128) in HBM, ``o_ref``, (2, 1, 128) in HBM, and of its own
            core ``share``, (16, 128) in VMEM, ``sums``, (1, 128) in VMEM, and ``done``, a
            semaphore. The axis of the cores is called ``core``.
        x: (32, 128), float32.

    Returns:
        (2, 1, 128), float32: whatever the kernels have put there.
    """
    call = pl.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((CORES, 1, 128), jnp.float32),
        mesh=pltpu.TensorCoreMesh(axis_name="core", num_cores=CORES),
        scratch_types=[
            pltpu.VMEM((SHARE, 128), jnp.float32),
            pltpu.VMEM((1, 128), jnp.float32),
            pltpu.SemaphoreType.DMA,
        ],
    )
    sums: jax.Array = call(x)
    return sums


def starter(x_ref: Any, o_ref: Any, share: Any, sums: Any, done: Any) -> None:
    """Where to begin: each core does the work of core 0."""
    pltpu.async_copy(x_ref.at[pl.ds(0, SHARE)], share, done).wait()
    sums[...] = jnp.sum(share[...], axis=0, keepdims=True)
    pltpu.async_copy(sums, o_ref.at[0], done).wait()


def solution(x_ref: Any, o_ref: Any, share: Any, sums: Any, done: Any) -> None:
    """Each core asks which one it is, and keeps to its share of x and its row of the result."""
    core = jax.lax.axis_index("core")
    pltpu.async_copy(x_ref.at[pl.ds(core * SHARE, SHARE)], share, done).wait()
    sums[...] = jnp.sum(share[...], axis=0, keepdims=True)
    pltpu.async_copy(sums, o_ref.at[core], done).wait()


def both_write_row_0(x_ref: Any, o_ref: Any, share: Any, sums: Any, done: Any) -> None:
    """Wrong: each core has its own share, and both write to the same row."""
    core = jax.lax.axis_index("core")
    pltpu.async_copy(x_ref.at[pl.ds(core * SHARE, SHARE)], share, done).wait()
    sums[...] = jnp.sum(share[...], axis=0, keepdims=True)
    pltpu.async_copy(sums, o_ref.at[0], done).wait()


def both_read_the_first_half(x_ref: Any, o_ref: Any, share: Any, sums: Any, done: Any) -> None:
    """Wrong: each core has its own row, and both sum the first half."""
    core = jax.lax.axis_index("core")
    pltpu.async_copy(x_ref.at[pl.ds(0, SHARE)], share, done).wait()
    sums[...] = jnp.sum(share[...], axis=0, keepdims=True)
    pltpu.async_copy(sums, o_ref.at[core], done).wait()


def result_not_awaited(x_ref: Any, o_ref: Any, share: Any, sums: Any, done: Any) -> None:
    """Wrong: the kernel ends while its result may still be on its way."""
    core = jax.lax.axis_index("core")
    pltpu.async_copy(x_ref.at[pl.ds(core * SHARE, SHARE)], share, done).wait()
    sums[...] = jnp.sum(share[...], axis=0, keepdims=True)
    pltpu.async_copy(sums, o_ref.at[core], done)


WRONG: tuple[tuple[Kernel, str], ...] = (
    (starter, "both cores write to the same place"),
    (both_write_row_0, "both cores write to the same place"),
    (both_read_the_first_half, "each core has to begin at a row of its own"),
    (result_not_awaited, "a copy that nobody has waited for"),
)


def check(kernel: Kernel) -> None:
    """Run ``kernel`` on two simulated cores that are watched for races, and compare the sums.

    Args:
        kernel: takes ``x_ref``, f32[32, 128], ``o_ref``, f32[2, 1, 128], ``share``, f32[16, 128],
            ``sums``, f32[1, 128], and ``done``, a semaphore.

    Raises:
        AssertionError: the cores write to the same place, a sum is wrong or missing, or lowering
            refuses the kernel; holds the whole report.
    """
    x = np.arange(CORES * SHARE * 128, dtype=np.float32).reshape(-1, 128) % 97
    report = climb(
        lambda x: sums_per_core(kernel, x),
        x,
        reference=lambda x: x.reshape(CORES, SHARE, 128).sum(axis=1, keepdims=True),
        rungs=("trace", "simulate", "lower"),
        chips=("v5p",),
    )
    if report.passed:
        return
    raced = report.of("simulate", "races")
    default = report.of("simulate", "default").difference
    if raced.error is not None and "RACE" in raced.error.message:
        hint = "both cores write to the same place: give each one a row of its own"
    elif default is not None and default.nan:
        hint = "a row holds NaN, the mark of a copy that nobody has waited for, or never started"
    elif default is not None:
        hint = "each core has to begin at a row of its own: ask jax.lax.axis_index('core')"
    else:
        hint = "the report says which rung refuses, and with what words"
    raise AssertionError(f"not healthy yet:\n{report}\nHint: {hint}")
