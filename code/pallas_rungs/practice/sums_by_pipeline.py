"""Exercise: sum the columns of an array in HBM with a pipeline inside the kernel."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report, climb

Kernel = Callable[[Any, Any], None]

BLOCKS = 4
BLOCK_ROWS = 8
ROWS = pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i, 0))


def sums_by_pipeline(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Call ``kernel`` once, with x left in HBM.

    Args:
        kernel: takes ``x_ref``, (32, 128) in HBM, and ``o_ref``, (1, 128) in VMEM.
        x: (32, 128), float32.

    Returns:
        (1, 128), float32: whatever the kernel has put there.
    """
    sums: jax.Array = pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
    )(x)
    return sums


def starter(x_ref: Any, o_ref: Any) -> None:
    """Where to begin: a pipeline over one block, whose body writes what it sees."""

    def body(block_ref: Any) -> None:
        o_ref[...] = jnp.sum(block_ref[...], axis=0, keepdims=True)

    pltpu.emit_pipeline(body, grid=(1,), in_specs=[ROWS])(x_ref)


def solution(x_ref: Any, o_ref: Any) -> None:
    """Clear the sums before the pipeline; its body adds to a ref of the kernel around it."""
    o_ref[...] = jnp.zeros_like(o_ref)

    def body(block_ref: Any) -> None:
        o_ref[...] += jnp.sum(block_ref[...], axis=0, keepdims=True)

    pltpu.emit_pipeline(body, grid=(BLOCKS,), in_specs=[ROWS])(x_ref)


def not_cleared(x_ref: Any, o_ref: Any) -> None:
    """Wrong: the body adds to what was in the output's memory before."""

    def body(block_ref: Any) -> None:
        o_ref[...] += jnp.sum(block_ref[...], axis=0, keepdims=True)

    pltpu.emit_pipeline(body, grid=(BLOCKS,), in_specs=[ROWS])(x_ref)


def only_the_last_block(x_ref: Any, o_ref: Any) -> None:
    """Wrong: the body writes where it should add."""
    o_ref[...] = jnp.zeros_like(o_ref)

    def body(block_ref: Any) -> None:
        o_ref[...] = jnp.sum(block_ref[...], axis=0, keepdims=True)

    pltpu.emit_pipeline(body, grid=(BLOCKS,), in_specs=[ROWS])(x_ref)


def element_offsets(x_ref: Any, o_ref: Any) -> None:
    """Wrong: the index map returns rows where a block index is asked for."""
    o_ref[...] = jnp.zeros_like(o_ref)

    def body(block_ref: Any) -> None:
        o_ref[...] += jnp.sum(block_ref[...], axis=0, keepdims=True)

    spec = pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i * BLOCK_ROWS, 0))
    pltpu.emit_pipeline(body, grid=(BLOCKS,), in_specs=[spec])(x_ref)


WRONG: tuple[tuple[Kernel, str], ...] = (
    (not_cleared, "what the output held before: clear it"),
    (only_the_last_block, "only one block is left in the sum"),
    (element_offsets, "an index map returns block indices"),
)


def check(kernel: Kernel) -> None:
    """Try ``kernel`` in the simulator and lower it.

    A pipeline asks which chip it is for; `climb` names one.

    Args:
        kernel: takes ``x_ref``, f32[32, 128] in HBM, and ``o_ref``, f32[1, 128].

    Raises:
        AssertionError: a rung did not pass; holds the whole report and a hint.
    """
    x = np.arange(BLOCKS * BLOCK_ROWS * 128, dtype=np.float32).reshape(-1, 128) % 97
    report = climb(
        lambda x: sums_by_pipeline(kernel, x),
        x,
        reference=lambda x: x.sum(axis=0, keepdims=True),
        rungs=("trace", "simulate", "lower"),
    )
    if report.passed:
        return
    raise AssertionError(f"not healthy yet:\n{report}{_hint(report)}")


def _hint(report: Report) -> str:
    """Say what the report of a known mistake means."""
    difference = report.of("simulate", "default").difference
    error = report.of("simulate", "default").error
    if difference is not None and difference.nan:
        return "\nHint: the sum starts from what the output held before: clear it first"
    if error is not None and "Out-of-bounds" in error.message:
        return "\nHint: a block lies outside of x: an index map returns block indices, not rows"
    if difference is not None:
        return "\nHint: only one block is left in the sum: run over all of them, and add"
    return ""
