"""Exercise: on a GPU, add two arrays by way of shared memory, every copy waited for."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental.pallas import mosaic_gpu as plgpu

from pallas_rungs.ladder import Report, climb

Kernel = Callable[..., None]


def sum_through_smem(kernel: Kernel, x: jax.Array, y: jax.Array) -> jax.Array:
    """Call ``kernel(x_gmem, y_gmem, o_gmem, x_smem, y_smem, loaded)`` once.

    Args:
        kernel: takes three refs in global memory, two buffers in shared memory, and a barrier that
            completes a phase with two arrivals.
        x: (16, 128), float32.
        y: (16, 128), float32.

    Returns:
        (16, 128), float32: whatever the kernel has copied to ``o_gmem``.
    """
    buffer = plgpu.SMEM(x.shape, x.dtype)
    call: Callable[..., jax.Array] = plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_types=[buffer, buffer, plgpu.Barrier(num_arrivals=2)],
    )
    return call(x, y)


def starter(x_gmem: Any, y_gmem: Any, o_gmem: Any, x_smem: Any, y_smem: Any, loaded: Any) -> None:
    """Where to begin: three copies and a sum. Nobody waits for anything."""
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
    plgpu.copy_gmem_to_smem(y_gmem, y_smem, loaded)
    x_smem[...] += y_smem[...]
    plgpu.copy_smem_to_gmem(x_smem, o_gmem)


def solution(x_gmem: Any, y_gmem: Any, o_gmem: Any, x_smem: Any, y_smem: Any, loaded: Any) -> None:
    """Wait for both loads at the barrier, commit the sum, wait for the store."""
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
    plgpu.copy_gmem_to_smem(y_gmem, y_smem, loaded)
    plgpu.barrier_wait(loaded)
    x_smem[...] += y_smem[...]
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(x_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


def not_committed(
    x_gmem: Any, y_gmem: Any, o_gmem: Any, x_smem: Any, y_smem: Any, loaded: Any
) -> None:
    """Wrong: the copy out may read shared memory as it was before the sum."""
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
    plgpu.copy_gmem_to_smem(y_gmem, y_smem, loaded)
    plgpu.barrier_wait(loaded)
    x_smem[...] += y_smem[...]
    plgpu.copy_smem_to_gmem(x_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


def store_not_awaited(
    x_gmem: Any, y_gmem: Any, o_gmem: Any, x_smem: Any, y_smem: Any, loaded: Any
) -> None:
    """Wrong: the kernel ends while its result is under way."""
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
    plgpu.copy_gmem_to_smem(y_gmem, y_smem, loaded)
    plgpu.barrier_wait(loaded)
    x_smem[...] += y_smem[...]
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(x_smem, o_gmem)


def waits_for_each_load(
    x_gmem: Any, y_gmem: Any, o_gmem: Any, x_smem: Any, y_smem: Any, loaded: Any
) -> None:
    """Wrong: a wait after each load, at a barrier that wants both to have arrived."""
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
    plgpu.barrier_wait(loaded)
    plgpu.copy_gmem_to_smem(y_gmem, y_smem, loaded)
    plgpu.barrier_wait(loaded)
    x_smem[...] += y_smem[...]
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(x_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


WRONG: tuple[tuple[Kernel, str], ...] = (
    (not_committed, "plgpu.commit_smem"),
    (store_not_awaited, "plgpu.wait_smem_to_gmem"),
    (waits_for_each_load, "two arrivals complete a phase"),
)


def check(kernel: Kernel) -> None:
    """Try ``kernel`` in the GPU simulator, with race detection too, and lower it for an H100.

    Args:
        kernel: as `sum_through_smem` calls it.

    Raises:
        AssertionError: a rung did not pass; holds the whole report and a hint.
    """
    x = (np.arange(16 * 128, dtype=np.float32) % 97).reshape(16, 128)
    report = climb(
        lambda x, y: sum_through_smem(kernel, x, y),
        x,
        2 * x,
        reference=lambda x, y: x + y,
        rungs=("trace", "simulate", "lower"),
        chips=("h100",),
    )
    if not report.passed:
        raise AssertionError(f"not healthy yet:\n{report}{_hint(report)}")


def _hint(report: Report) -> str:
    """Say what the report of a known mistake means."""
    verdict = report.of("simulate", "races")
    if verdict.status == "deadlocked":
        return (
            "\nHint: two arrivals complete a phase of this barrier, one for each load: start both "
            "loads, then wait once"
        )
    error = verdict.error
    if error is not None and "Not all copy_smem_to_gmem" in error.message:
        return "\nHint: the kernel ends while its store is under way: plgpu.wait_smem_to_gmem(0)"
    if error is None or "RACE" not in error.message:
        return ""
    if error.frame is not None and "copy_smem_to_gmem" in error.frame.source:
        return (
            "\nHint: the copy out does not see ordinary stores to shared memory yet: "
            "plgpu.commit_smem() stands between them"
        )
    return "\nHint: nobody waited until both loads had arrived: plgpu.barrier_wait(loaded)"
