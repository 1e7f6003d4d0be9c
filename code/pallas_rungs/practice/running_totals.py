"""Exercise: each program adds its block to a total that it hands on to the next."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

Totals = Callable[[Any], Any]

ROWS = 64


def starter_kernel(x_ref: Any, o_ref: Any) -> None:
    """Write the column sums of this block to each of its rows."""
    total = jnp.sum(x_ref[...], axis=0, keepdims=True)
    o_ref[...] = jnp.broadcast_to(total, o_ref.shape)


def starter(x: jax.Array) -> jax.Array:
    """Eight programs, each with eight rows of x, f32[64, 128]."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    totals: jax.Array = pl.pallas_call(
        starter_kernel,
        grid=(ROWS // 8,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((ROWS, 128), jnp.float32),
    )(x)
    return totals


def solution_kernel(x_ref: Any, o_ref: Any, total_ref: Any) -> None:
    """Add this block's column sums to the total in scratch, then write the total."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        total_ref[...] = jnp.zeros_like(total_ref)

    total_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)
    o_ref[...] = jnp.broadcast_to(total_ref[...], o_ref.shape)


def solution(x: jax.Array) -> jax.Array:
    """One row of scratch carries the total from program to program, in order."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    totals: jax.Array = pl.pallas_call(
        solution_kernel,
        grid=(ROWS // 8,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((ROWS, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((1, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)
    return totals


def _carrying(kernel: Callable[..., None], x: jax.Array, **options: Any) -> jax.Array:
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    totals: jax.Array = pl.pallas_call(
        kernel,
        grid=(ROWS // 8,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((ROWS, 128), jnp.float32),
        **options,
    )(x)
    return totals


def not_cleared(x: jax.Array) -> jax.Array:
    """Wrong: the scratch starts out undefined."""

    def kernel(x_ref: Any, o_ref: Any, total_ref: Any) -> None:
        total_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)
        o_ref[...] = jnp.broadcast_to(total_ref[...], o_ref.shape)

    return _carrying(kernel, x, scratch_shapes=[pltpu.VMEM((1, 128), jnp.float32)])


def carried_in_a_scope(x: jax.Array) -> jax.Array:
    """Wrong: memory of run_scoped does not outlive the program."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        first = pl.program_id(0) == 0

        def body(total_ref: Any) -> None:
            @pl.when(first)
            def _() -> None:
                total_ref[...] = jnp.zeros_like(total_ref)

            total_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)
            o_ref[...] = jnp.broadcast_to(total_ref[...], o_ref.shape)

        pl.run_scoped(body, pltpu.VMEM((1, 128), jnp.float32))

    return _carrying(kernel, x)


def on_a_parallel_axis(x: jax.Array) -> jax.Array:
    """Wrong: a parallel axis may be shared out to two cores, each with scratch of its own."""
    return _carrying(
        solution_kernel,
        x,
        scratch_shapes=[pltpu.VMEM((1, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )


def written_before_added(x: jax.Array) -> jax.Array:
    """Wrong: each block gets the total of the blocks before it, without its own."""

    def kernel(x_ref: Any, o_ref: Any, total_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total_ref[...] = jnp.zeros_like(total_ref)

        o_ref[...] = jnp.broadcast_to(total_ref[...], o_ref.shape)
        total_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)

    return _carrying(kernel, x, scratch_shapes=[pltpu.VMEM((1, 128), jnp.float32)])


WRONG: tuple[tuple[Totals, str], ...] = (
    (not_cleared, "not a single block is right"),
    (carried_in_a_scope, "only the first block is right"),
    (on_a_parallel_axis, r"simulate default +wrong.*two cores"),
    (written_before_added, "without its own"),
)


def totals(x: Any) -> np.ndarray:
    """Return what is wanted, in float64, (64, 128)."""
    blocks = np.asarray(x, np.float64).reshape(ROWS // 8, 8, 128).sum(axis=1)
    return np.repeat(np.cumsum(blocks, axis=0), 8, axis=0)


def check(function: Totals) -> None:
    """Run ``function`` in the interpreter, compare, then climb as far as lowering.

    Args:
        function: takes x, f32[64, 128], and returns f32[64, 128].

    Raises:
        AssertionError: a total is wrong or a rung did not pass; says what was found and what to
            look at.
    """
    call = "running_totals(x)"
    x = np.arange(ROWS * 128, dtype=np.float32).reshape(ROWS, 128) % 100 + 1
    want = totals(x)
    own = np.repeat(x.reshape(ROWS // 8, 8, 128).sum(axis=1), 8, axis=0)
    hints = (
        Hint("each block holds the total of its own block alone: carry the total of the programs "
             "before in scratch.", close_to(own)),
        Hint("each block holds the total of the blocks before it, without its own: add first, "
             "then write.", close_to(want - own)),
        Hint("not a single block is right: nothing fills scratch, so the first program has to "
             "clear it.", lambda got, want: has_nan(got[:8], want[:8])),
        Hint("only the first block is right: memory of pl.run_scoped is undefined again in every "
             "program; scratch_shapes outlives them.", has_nan),
    )  # fmt: skip
    agree(run(function, x, call=call), want, call=call, rtol=0.0, atol=0.0, hints=hints)
    climbs(
        function,
        x,
        reference=totals,
        rungs=("trace", "interpret", "simulate", "lower"),
        name="running_totals",
    )
