"""Exercise: heal a kernel that sums the columns of a matrix block by block."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import climbs

Kernel = Callable[[Any, Any], None]

ROWS = 20
BLOCK_ROWS = 8


def column_sums(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Call ``kernel`` on a grid of three programs, each given eight rows of ``x``.

    Args:
        kernel: takes ``x_ref`` (8, 128) and ``o_ref`` (1, 128); every program gets the same
            block of the output.
        x: (20, 128), float32. Eight does not divide twenty.

    Returns:
        (1, 128), float32: whatever the kernel has put there.
    """
    sums: jax.Array = pl.pallas_call(
        kernel,
        grid=(pl.cdiv(ROWS, BLOCK_ROWS),),
        in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
    )(x)
    return sums


def starter(x_ref: Any, o_ref: Any) -> None:
    """The sick kernel. It has two faults."""
    o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)


def solution(x_ref: Any, o_ref: Any) -> None:
    """Clear the output on its first visit; put the identity of the sum where no row is."""
    i = pl.program_id(0)

    @pl.when(i == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    row = i * BLOCK_ROWS + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
    x = jnp.where(row < ROWS, x_ref[...], 0.0)
    o_ref[...] += jnp.sum(x, axis=0, keepdims=True)


def cleared_but_unmasked(x_ref: Any, o_ref: Any) -> None:
    """Wrong: the rows past the end are summed as well."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)


def masked_by_multiplying(x_ref: Any, o_ref: Any) -> None:
    """Wrong: zero times NaN is NaN."""
    i = pl.program_id(0)

    @pl.when(i == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    row = i * BLOCK_ROWS + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
    x = x_ref[...] * (row < ROWS).astype(jnp.float32)
    o_ref[...] += jnp.sum(x, axis=0, keepdims=True)


def cleared_every_time(x_ref: Any, o_ref: Any) -> None:
    """Wrong: each program forgets what the ones before it have added."""
    i = pl.program_id(0)
    row = i * BLOCK_ROWS + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
    x = jnp.where(row < ROWS, x_ref[...], 0.0)
    o_ref[...] = jnp.sum(x, axis=0, keepdims=True)


WRONG: tuple[tuple[Kernel, str], ...] = (
    (cleared_but_unmasked, "128 of 128 values differ, 128 of them NaN"),
    (masked_by_multiplying, "zero times NaN"),
    (cleared_every_time, r"got 8960, want 24320"),
)


def check(kernel: Kernel) -> Report:
    """Climb every rung that needs no chip with ``kernel`` and insist that each one passes.

    Args:
        kernel: takes ``x_ref``, f32[8, 128], and ``o_ref``, f32[1, 128].

    Returns:
        The report, when every rung passed. Where libtpu is not installed, the compile rung is
        left out.

    Raises:
        AssertionError: a rung did not pass; holds the whole report.
    """
    x = np.arange(ROWS * 128, dtype=np.float32).reshape(ROWS, 128)
    return climbs(
        lambda x: column_sums(kernel, x),
        x,
        reference=lambda x: np.sum(x, axis=0, keepdims=True),
        name=getattr(kernel, "__name__", "kernel"),
    )
