"""Exercise: count the positive elements of each row of integers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, run

Count = Callable[[Any], Any]

M, N = 16, 300
BM, BN = 8, 128


def count_kernel(x_ref: Any, o_ref: Any) -> None:
    """Add the number of positive elements of this block."""

    @pl.when(pl.program_id(1) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    positive = x_ref[...] > 0
    o_ref[...] += jnp.sum(positive.astype(jnp.int32), axis=1, keepdims=True)


def starter(x: jax.Array) -> jax.Array:
    """Count in blocks of (8, 128). It is right under interpret=True."""
    counts: jax.Array = pl.pallas_call(
        count_kernel,
        grid=(M // BM, pl.cdiv(N, BN)),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((BM, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((M, 1), jnp.int32),
    )(x)
    return counts


def masked_count_kernel(x_ref: Any, o_ref: Any) -> None:
    """Count where the element is positive and the array has it."""
    j = pl.program_id(1)

    @pl.when(j == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    column = j * BN + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    positive = (x_ref[...] > 0) & (column < N)
    o_ref[...] += jnp.sum(positive.astype(jnp.int32), axis=1, keepdims=True)


def solution(x: jax.Array) -> jax.Array:
    """The same grid; columns past the end do not count."""
    counts: jax.Array = pl.pallas_call(
        masked_count_kernel,
        grid=(M // BM, pl.cdiv(N, BN)),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((BM, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((M, 1), jnp.int32),
    )(x)
    return counts


def _by_blocks(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    counts: jax.Array = pl.pallas_call(
        kernel,
        grid=(M // BM, pl.cdiv(N, BN)),
        in_specs=[pl.BlockSpec((BM, BN), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((BM, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((M, 1), jnp.int32),
    )(x)
    return counts


def _counting(
    x_ref: Any, o_ref: Any, counts: Callable[[Any, Any], Any], cleared: bool = True
) -> None:
    j = pl.program_id(1)

    if cleared:

        @pl.when(j == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

    column = j * BN + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    o_ref[...] += jnp.sum(counts(x_ref[...], column).astype(jnp.int32), axis=1, keepdims=True)


def masked_with_one(x: jax.Array) -> jax.Array:
    """Wrong: the fill is counted itself."""
    return _by_blocks(partial(_counting, counts=lambda x, c: jnp.where(c < N, x, 1) > 0), x)


def zero_counts(x: jax.Array) -> jax.Array:
    """Wrong: zero is not positive."""
    return _by_blocks(partial(_counting, counts=lambda x, c: (x >= 0) & (c < N)), x)


def not_cleared(x: jax.Array) -> jax.Array:
    """Wrong: the output block starts out undefined."""
    return _by_blocks(partial(_counting, counts=lambda x, c: (x > 0) & (c < N), cleared=False), x)


WRONG: tuple[tuple[Count, str], ...] = (
    (starter, "interpret +passed.*simulate default +wrong"),
    (masked_with_one, "84 too many"),
    (zero_counts, "zero is not positive"),
    (not_cleared, "clear the output block"),
)


def check(function: Count) -> None:
    """Run ``function`` in the interpreter, compare, then climb as far as lowering.

    Args:
        function: takes x, i32[16, 300], and returns how many elements of each row are positive,
            i32[16, 1].

    Raises:
        AssertionError: A count is wrong or a rung did not pass; says what was found and what to
            look at.
    """
    call = "count_positive(x)"
    x = np.random.default_rng(0).integers(-3, 4, (M, N)).astype(np.int32)
    want = (x > 0).sum(axis=1, keepdims=True)
    hints = (
        Hint("every count is 84 too many: the fill for the columns past the end is counted.",
             close_to(want + (-N) % BN)),
        Hint("zero is not positive.", close_to((x >= 0).sum(axis=1, keepdims=True))),
        Hint("the counts begin with whatever the memory held: clear the output block on its first "
             "visit.", lambda got, want: bool((np.abs(got.astype(np.int64)) > 2**30).all())),
    )  # fmt: skip
    agree(
        run(function, x, call=call), want, call=call, rtol=0.0, atol=0.0, hints=hints,
        dtype=jnp.int32,
    )  # fmt: skip
    climbs(
        function,
        x,
        reference=lambda x: (x > 0).sum(axis=1, keepdims=True),
        rungs=("trace", "interpret", "simulate", "lower"),
        name="count_positive",
    )
