"""Exercise: column sums of a matrix whose rows no block divides, on two interpreters."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Status, climb
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

Colsum = Callable[..., Any]

M, N = 300, 256
BM, BN = 128, 128


def colsum_kernel(x_ref: Any, o_ref: Any) -> None:
    """Add the column sums of a block to the output block."""
    o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)


def starter(x: jax.Array, interpret: Any = False) -> jax.Array:
    """Sum the columns of x, f32[300, 256], in blocks of (128, 128). Three things are missing."""
    sums: jax.Array = pl.pallas_call(
        colsum_kernel,
        grid=(pl.cdiv(M, BM), N // BN),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((1, BN), lambda i, j: (0, j)),
        out_shape=jax.ShapeDtypeStruct((1, N), jnp.float32),
        interpret=interpret,
    )(x)
    return sums


def masked_kernel(x_ref: Any, o_ref: Any) -> None:
    """Clear on the first visit; put 0, the identity of the sum, where the matrix has no row."""
    i = pl.program_id(1)

    @pl.when(i == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    row = i * BM + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
    x = jnp.where(row < M, x_ref[...], 0.0)
    o_ref[...] += jnp.sum(x, axis=0, keepdims=True)


def solution(x: jax.Array, interpret: Any = False) -> jax.Array:
    """The blocks of rows are the last axis of the grid."""
    sums: jax.Array = pl.pallas_call(
        masked_kernel,
        grid=(N // BN, pl.cdiv(M, BM)),
        in_specs=[pl.BlockSpec((BM, BN), lambda j, i: (i, j))],
        out_specs=pl.BlockSpec((1, BN), lambda j, i: (0, j)),
        out_shape=jax.ShapeDtypeStruct((1, N), jnp.float32),
        interpret=interpret,
    )(x)
    return sums


def _in_order(kernel: Callable[..., None], x: jax.Array, interpret: Any) -> jax.Array:
    sums: jax.Array = pl.pallas_call(
        kernel,
        grid=(N // BN, pl.cdiv(M, BM)),
        in_specs=[pl.BlockSpec((BM, BN), lambda j, i: (i, j))],
        out_specs=pl.BlockSpec((1, BN), lambda j, i: (0, j)),
        out_shape=jax.ShapeDtypeStruct((1, N), jnp.float32),
        interpret=interpret,
    )(x)
    return sums


def not_initialised(x: jax.Array, interpret: Any = False) -> jax.Array:
    """Wrong: the output block is never cleared."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        row = pl.program_id(1) * BM + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        o_ref[...] += jnp.sum(jnp.where(row < M, x_ref[...], 0.0), axis=0, keepdims=True)

    return _in_order(kernel, x, interpret)


def _cleared(x_ref: Any, o_ref: Any, masked: Callable[[Any, Any], Any]) -> None:
    @pl.when(pl.program_id(1) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    row = pl.program_id(1) * BM + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
    o_ref[...] += jnp.sum(masked(x_ref[...], row), axis=0, keepdims=True)


def tail_included(x: jax.Array, interpret: Any = False) -> jax.Array:
    """Wrong: the rows past the end are summed too."""
    return _in_order(partial(_cleared, masked=lambda x, row: x), x, interpret)


def masked_by_multiplying(x: jax.Array, interpret: Any = False) -> jax.Array:
    """Wrong: zero times NaN is NaN."""
    masked = partial(_cleared, masked=lambda x, row: x * (row < M).astype(x.dtype))
    return _in_order(masked, x, interpret)


def one_row_too_many(x: jax.Array, interpret: Any = False) -> jax.Array:
    """Wrong: row 300 is let through."""
    return _in_order(
        partial(_cleared, masked=lambda x, row: jnp.where(row <= M, x, 0.0)), x, interpret
    )


def rows_within_the_block(x: jax.Array, interpret: Any = False) -> jax.Array:
    """Wrong: rows are counted from the start of the block, so no row is past the end."""
    masked = partial(
        _cleared, masked=lambda x, row: jnp.where(row - pl.program_id(1) * BM < M % BM, x, 0.0)
    )
    return _in_order(masked, x, interpret)


def reduction_first(x: jax.Array, interpret: Any = False) -> jax.Array:
    """Wrong: the blocks of rows are the first axis of the grid."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

        row = i * BM + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        o_ref[...] += jnp.sum(jnp.where(row < M, x_ref[...], 0.0), axis=0, keepdims=True)

    sums: jax.Array = pl.pallas_call(
        kernel,
        grid=(pl.cdiv(M, BM), N // BN),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((1, BN), lambda i, j: (0, j)),
        out_shape=jax.ShapeDtypeStruct((1, N), jnp.float32),
        interpret=interpret,
    )(x)
    return sums


WRONG: tuple[tuple[Colsum, str], ...] = (
    (not_initialised, "clear the output block on its first visit"),
    (tail_included, "84 rows past the end"),
    (masked_by_multiplying, "zero times NaN"),
    (one_row_too_many, "84 rows past the end"),
    (rows_within_the_block, "counted from the start of the block"),
    (reduction_first, "Revisited block"),
)


def check(function: Colsum) -> None:
    """Call ``function`` with both interpreters and compare with float64.

    Args:
        function: takes x, f32[300, 256], and ``interpret``; returns the sums of its columns, of
            shape (256,) or (1, 256), float32.

    Raises:
        AssertionError: A sum is wrong, or one of the interpreters refuses; says what was found
            and what to look at.
    """
    call = "colsum(x, interpret=True)"
    x = np.random.default_rng(0).integers(-8, 9, (M, N)).astype(np.float32)
    want = x.astype(np.float64).sum(axis=0)

    def summed(x: Any, interpret: Any) -> Any:
        sums = function(x, interpret=interpret)
        return sums[0] if getattr(sums, "shape", ()) == (1, N) else sums

    got = run(lambda x: summed(x, True), x, call=call)
    blocks = np.concatenate([x, np.zeros((-M % BM, N))]).reshape(-1, BM, N)

    def right_where_memory_is_zero() -> bool:
        report = climb(
            lambda x: summed(x, True),
            x,
            reference=lambda x: x.sum(axis=0),
            rungs=("simulate",),
            simulations={"zeros": {"uninitialized_memory": "zero"}},
        )
        return report.status("simulate", "zeros") == Status.PASSED

    hints = (
        Hint("rows are counted from the start of the block: a row of the matrix is "
             "program_id * 128 plus that.", close_to(blocks[:, : M % BM].sum(axis=(0, 1)))),
        Hint("rows past the end were summed: three blocks of 128 rows hold 84 rows past the end, "
             "which are undefined, here NaN. Mask them.",
             lambda got, want: has_nan(got, want) and right_where_memory_is_zero()),
        Hint("nobody cleared the accumulator: clear the output block on its first visit.", has_nan),
    )  # fmt: skip
    agree(got, want, call=call, rtol=0.0, atol=0.0, hints=hints, dtype=jnp.float32)
    climbs(
        lambda x: summed(x, pltpu.InterpretParams(detect_races=True)),
        x,
        reference=lambda x: x.sum(axis=0),
        rungs=("interpret", "simulate"),
        name="colsum(x, interpret=pltpu.InterpretParams(detect_races=True))",
    )
