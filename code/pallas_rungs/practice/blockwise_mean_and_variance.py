"""Exercise: mean and variance of columns whose rows come in blocks."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.practice.judging import Hint, agree, close_to, has_nan, run

Kernel = Callable[..., None]

ROWS, BLOCK_ROWS = 300, 128


def mean_and_variance(kernel: Kernel, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Call ``kernel`` on a grid of three programs, each given 128 rows of ``x``.

    Args:
        kernel: takes ``x_ref`` (128, 128), the outputs ``mean_ref`` and ``var_ref``, (1, 128), and
            a scratch ``square_ref``, (1, 128), all float32; the last three are the same for every
            program.
        x: (300, 128), float32. 128 does not divide 300.

    Returns:
        mean and variance of each column, (1, 128), float32.
    """
    whole = pl.BlockSpec((1, 128), lambda i: (0, 0))
    mean, var = pl.pallas_call(
        kernel,
        grid=(pl.cdiv(ROWS, BLOCK_ROWS),),
        in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i, 0))],
        out_specs=[whole, whole],
        out_shape=[jax.ShapeDtypeStruct((1, 128), jnp.float32)] * 2,
        scratch_shapes=[pltpu.VMEM((1, 128), jnp.float32)],
    )(x)
    return mean, var


def _block(x_ref: Any) -> tuple[Any, Any]:
    """Return which rows of the block exist, (128, 1), and how many."""
    first = pl.program_id(0) * BLOCK_ROWS
    exists = first + jax.lax.broadcasted_iota(jnp.int32, (BLOCK_ROWS, 1), 0) < ROWS
    count = jnp.minimum(ROWS - first, BLOCK_ROWS).astype(jnp.float32)
    return exists, count


def _merge(x_ref: Any, mean_ref: Any, var_ref: Any, square_ref: Any, between: bool) -> None:
    i = pl.program_id(0)
    before = (i * BLOCK_ROWS).astype(jnp.float32)

    @pl.when(i == 0)
    def _() -> None:
        mean_ref[...] = jnp.zeros_like(mean_ref)
        square_ref[...] = jnp.zeros_like(square_ref)

    exists, count = _block(x_ref)
    x = x_ref[...]
    mean = jnp.sum(jnp.where(exists, x, 0.0), axis=0, keepdims=True) / count
    square = jnp.sum(jnp.where(exists, (x - mean) ** 2, 0.0), axis=0, keepdims=True)
    apart = mean - mean_ref[...]
    total = before + count
    mean_ref[...] += apart * (count / total)
    square_ref[...] += square + between * apart**2 * (before * count / total)

    @pl.when(i == pl.num_programs(0) - 1)
    def _() -> None:
        var_ref[...] = square_ref[...] / ROWS


def starter(x_ref: Any, mean_ref: Any, var_ref: Any, square_ref: Any) -> None:
    """Mean and variance of a block; each program overwrites those of the one before."""
    mean = jnp.mean(x_ref[...], axis=0, keepdims=True)
    square_ref[...] = jnp.sum((x_ref[...] - mean) ** 2, axis=0, keepdims=True)
    mean_ref[...] = mean
    var_ref[...] = square_ref[...] / BLOCK_ROWS


def solution(x_ref: Any, mean_ref: Any, var_ref: Any, square_ref: Any) -> None:
    """Merge (count, mean, sum of squares about the mean) of each block into the running one."""
    i = pl.program_id(0)

    @pl.when(i == 0)
    def _() -> None:
        mean_ref[...] = jnp.zeros_like(mean_ref)
        square_ref[...] = jnp.zeros_like(square_ref)

    before = i * BLOCK_ROWS
    after = jnp.minimum(before + BLOCK_ROWS, ROWS)
    exists = before + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0) < ROWS
    count = (after - before).astype(jnp.float32)
    mean = jnp.sum(jnp.where(exists, x_ref[...], 0.0), axis=0, keepdims=True) / count
    square = jnp.sum(jnp.where(exists, (x_ref[...] - mean) ** 2, 0.0), axis=0, keepdims=True)

    apart = mean - mean_ref[...]
    share = count / after.astype(jnp.float32)  # of all rows so far, how many are new
    mean_ref[...] += share * apart
    square_ref[...] += square + share * before.astype(jnp.float32) * apart**2

    @pl.when(i == pl.num_programs(0) - 1)
    def _() -> None:
        var_ref[...] = square_ref[...] / ROWS


def by_sums_of_squares(x_ref: Any, mean_ref: Any, var_ref: Any, square_ref: Any) -> None:
    """Wrong: the mean of the squares and the square of the mean are large and nearly equal."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        mean_ref[...] = jnp.zeros_like(mean_ref)
        square_ref[...] = jnp.zeros_like(square_ref)

    exists, _ = _block(x_ref)
    x = jnp.where(exists, x_ref[...], 0.0)
    mean_ref[...] += jnp.sum(x, axis=0, keepdims=True) / ROWS
    square_ref[...] += jnp.sum(x**2, axis=0, keepdims=True) / ROWS
    var_ref[...] = square_ref[...] - mean_ref[...] ** 2


def without_the_distance(x_ref: Any, mean_ref: Any, var_ref: Any, square_ref: Any) -> None:
    """Wrong: blocks with different means spread more than each block does."""
    _merge(x_ref, mean_ref, var_ref, square_ref, between=False)


def without_a_mask(x_ref: Any, mean_ref: Any, var_ref: Any, square_ref: Any) -> None:
    """Wrong: rows past the end are averaged too."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        mean_ref[...] = jnp.zeros_like(mean_ref)
        square_ref[...] = jnp.zeros_like(square_ref)

    mean_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True) / ROWS
    var_ref[...] = square_ref[...]


WRONG: tuple[tuple[Kernel, str], ...] = (
    (by_sums_of_squares, "variance.*large and nearly equal"),
    (without_the_distance, "distance between the means"),
    (without_a_mask, "mean.*past the end"),
)


def check(kernel: Kernel) -> None:
    """Compare mean and variance with float64, for columns near 3000 whose mean drifts.

    Args:
        kernel: as `mean_and_variance` calls it.

    Raises:
        AssertionError: a result is wrong; says which, where, and what to look at.
    """
    rng = np.random.default_rng(0)
    x = (3000 + np.arange(ROWS)[:, None] / 100 + rng.standard_normal((ROWS, 128))).astype(
        np.float32
    )
    mean, var = run(lambda x: mean_and_variance(kernel, x), x, call="mean_and_variance(kernel, x)")
    x64 = x.astype(np.float64)
    past = Hint("NaN: the last block has rows past the end of x. Select them away.", has_nan)
    agree(
        mean, x64.mean(axis=0, keepdims=True), call="the mean", rtol=1e-6, atol=0, hints=(past,)
    )  # fmt: skip
    blocks = [x64[first : first + BLOCK_ROWS] for first in range(0, ROWS, BLOCK_ROWS)]
    within = sum(np.sum((b - b.mean(axis=0)) ** 2, axis=0) for b in blocks) / ROWS
    want = x64.var(axis=0, keepdims=True)
    hints = (
        past,
        Hint(
            "These are the variances within the blocks. The distance between the means of the "
            "blocks is missing.",
            close_to(np.asarray(within)[None], rtol=1e-2),
        ),
        Hint(
            "The mean of the squares and the square of the mean are large and nearly equal: their "
            "difference is rounding error. Sum squares of distances from a mean.",
            lambda got, want: bool(np.abs(got - want).max() < 5),
        ),
    )
    agree(var, want, call="the variance", rtol=1e-3, atol=0, hints=hints)
