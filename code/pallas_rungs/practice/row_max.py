"""Exercise: the largest element of each row, where it may be negative or minus infinity."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

RowMax = Callable[[Any], Any]

M, N = 16, 300
BM, BN = 8, 128


def row_max_kernel(x_ref: Any, o_ref: Any) -> None:
    """Keep the larger of what is there and of the largest of this block."""
    j = pl.program_id(1)

    @pl.when(j == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    column = j * BN + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    x = jnp.where(column < N, x_ref[...], 0.0)
    o_ref[...] = jnp.maximum(o_ref[...], jnp.max(x, axis=1, keepdims=True))


def starter(x: jax.Array) -> jax.Array:
    """Find the largest element of each row of x, f32[16, 300], in blocks of (8, 128)."""
    largest: jax.Array = pl.pallas_call(
        row_max_kernel,
        grid=(M // BM, pl.cdiv(N, BN)),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((BM, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((M, 1), jnp.float32),
    )(x)
    return largest


def identity_kernel(x_ref: Any, o_ref: Any) -> None:
    """Start from minus infinity, the identity of the maximum, and mask with it."""
    j = pl.program_id(1)

    @pl.when(j == 0)
    def _() -> None:
        o_ref[...] = jnp.full_like(o_ref, -jnp.inf)

    column = j * BN + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    x = jnp.where(column < N, x_ref[...], -jnp.inf)
    o_ref[...] = jnp.maximum(o_ref[...], jnp.max(x, axis=1, keepdims=True))


def solution(x: jax.Array) -> jax.Array:
    """The same grid, with the identity of the maximum in both places."""
    largest: jax.Array = pl.pallas_call(
        identity_kernel,
        grid=(M // BM, pl.cdiv(N, BN)),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((BM, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((M, 1), jnp.float32),
    )(x)
    return largest


def _by_blocks(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    largest: jax.Array = pl.pallas_call(
        kernel,
        grid=(M // BM, pl.cdiv(N, BN)),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((BM, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((M, 1), jnp.float32),
    )(x)
    return largest


def _largest(x_ref: Any, o_ref: Any, start: float, fill: float | None) -> None:
    j = pl.program_id(1)

    @pl.when(j == 0)
    def _() -> None:
        o_ref[...] = jnp.full_like(o_ref, start)

    x = x_ref[...]
    if fill is not None:
        column = j * BN + jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
        x = jnp.where(column < N, x, fill)
    o_ref[...] = jnp.maximum(o_ref[...], jnp.max(x, axis=1, keepdims=True))


def tail_masked_with_zero(x: jax.Array) -> jax.Array:
    """Wrong: zero is larger than every element of a negative row."""
    return _by_blocks(partial(_largest, start=-np.inf, fill=0.0), x)


def started_at_zero(x: jax.Array) -> jax.Array:
    """Wrong: the tail is masked well, and the accumulator begins at zero."""
    return _by_blocks(partial(_largest, start=0.0, fill=-np.inf), x)


def large_negative_number(x: jax.Array) -> jax.Array:
    """Wrong: -1e30 is larger than minus infinity."""
    return _by_blocks(partial(_largest, start=-1e30, fill=-1e30), x)


def tail_included(x: jax.Array) -> jax.Array:
    """Wrong: what lies past the end takes part."""
    return _by_blocks(partial(_largest, start=-np.inf, fill=None), x)


WRONG: tuple[tuple[RowMax, str], ...] = (
    (tail_masked_with_zero, "0 is not smaller than every number"),
    (started_at_zero, "0 is not smaller than every number"),
    (large_negative_number, "larger than minus infinity"),
    (tail_included, "past the end"),
)


def check(function: RowMax) -> None:
    """Run ``function`` in the interpreter, compare, then climb as far as lowering.

    Args:
        function: takes x, f32[16, 300], and returns the largest element of each row, f32[16, 1].

    Raises:
        AssertionError: A maximum is wrong or a rung did not pass; says what was found and what to
            look at.
    """
    call = "row_max(x)"
    x = np.random.default_rng(0).standard_normal((M, N)).astype(np.float32)
    x[3] = -5 - np.abs(x[3])  # a row of negative numbers
    x[6] = -np.inf
    want = x.astype(np.float64).max(axis=1, keepdims=True)
    hints = (
        Hint("the last block has 84 columns past the end, and they are undefined: mask them.",
             has_nan),
        Hint("where a row has only negative numbers you found 0, and 0 is not smaller than every "
             "number. Look at the mask and at the first visit.",
             close_to(np.maximum(want, 0))),
        Hint("row 6 holds nothing but minus infinity, and every finite number is larger than "
             "minus infinity: it is the only identity of the maximum.",
             lambda got, want: bool(np.isfinite(got[6]).all())),
    )  # fmt: skip
    agree(run(function, x, call=call), want, call=call, rtol=0.0, atol=0.0, hints=hints)
    climbs(
        function,
        x,
        reference=lambda x: x.max(axis=1, keepdims=True),
        rungs=("trace", "interpret", "simulate", "lower"),
        name="row_max",
    )
