"""Exercise: write by hand the blocks that jax.vmap would give a kernel."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.softmax import softmax, softmax_kernel
from pallas_rungs.ladder import Report
from pallas_rungs.ladder.program import trace
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

Batched = Callable[[jax.Array], jax.Array]

BLOCK_ROWS = 8


def starter(x: jax.Array) -> jax.Array:
    """The call for one matrix. It takes no batch yet."""
    rows = pl.BlockSpec((BLOCK_ROWS, x.shape[-1]), lambda i: (i, 0))
    y: jax.Array = pl.pallas_call(
        softmax_kernel,
        grid=(x.shape[-2] // BLOCK_ROWS,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
    return y


def solution(x: jax.Array) -> jax.Array:
    """A leading grid axis counts the items; a squeezed dimension hides it from the kernel."""
    B, M, N = x.shape
    rows = pl.BlockSpec((None, BLOCK_ROWS, N), lambda b, i: (b, i, 0))
    y: jax.Array = pl.pallas_call(
        softmax_kernel,
        grid=(B, M // BLOCK_ROWS),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
    return y


def always_the_first_item(x: jax.Array) -> jax.Array:
    """Wrong: the input's index map does not look at b."""
    B, M, N = x.shape
    y: jax.Array = pl.pallas_call(
        softmax_kernel,
        grid=(B, M // BLOCK_ROWS),
        in_specs=[pl.BlockSpec((None, BLOCK_ROWS, N), lambda b, i: (0, i, 0))],
        out_specs=pl.BlockSpec((None, BLOCK_ROWS, N), lambda b, i: (b, i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
    return y


def one_in_place_of_none(x: jax.Array) -> jax.Array:
    """Wrong: the kernel gets (1, 8, N) and takes its axis 1, which are now the rows."""
    B, M, N = x.shape
    rows = pl.BlockSpec((1, BLOCK_ROWS, N), lambda b, i: (b, i, 0))
    y: jax.Array = pl.pallas_call(
        softmax_kernel,
        grid=(B, M // BLOCK_ROWS),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
    return y


def grid_the_other_way_round(x: jax.Array) -> jax.Array:
    """Wrong: the grid counts blocks first and items second, the index map the reverse."""
    B, M, N = x.shape
    rows = pl.BlockSpec((None, BLOCK_ROWS, N), lambda b, i: (b, i, 0))
    y: jax.Array = pl.pallas_call(
        softmax_kernel,
        grid=(M // BLOCK_ROWS, B),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
    return y


def left_to_vmap(x: jax.Array) -> jax.Array:
    """Wrong here: right numbers, but jax.vmap has written the specs."""
    return jax.vmap(lambda x: softmax(x, bm=BLOCK_ROWS))(x)


WRONG: tuple[tuple[Batched, str], ...] = (
    (always_the_first_item, "Every item is the softmax of item 0"),
    (one_in_place_of_none, "None, not 1"),
    (grid_the_other_way_round, "A block of the output was never written"),
    (left_to_vmap, "jax.vmap has written"),
)


def _softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def check(batched: Batched) -> Report:
    """Insist that a softmax of a batch is right, legal on a chip, and batched by its own specs.

    Args:
        batched: takes x, f32[2, 24, 256], and returns the softmax of each of its rows, computed
            by `softmax_kernel` on (8, 256) blocks.

    Returns:
        The report of the climb, when everything is in order.

    Raises:
        AssertionError: says what was found, and what to look at.
    """
    x = np.random.default_rng(0).standard_normal((2, 24, 256)).astype(np.float32)
    x64 = x.astype(np.float64)
    down = _softmax(x64.reshape(2, 3, BLOCK_ROWS, 256), axis=2).reshape(x.shape)
    hints = (
        Hint(
            "Every item is the softmax of item 0: does the index map of x return b?",
            close_to(_softmax(x64[[0, 0]], axis=2)),
        ),
        Hint(
            "The columns of each block sum to one. The kernel saw (1, 8, 256), where axis 1 are "
            "the rows: a dimension that the kernel should not see is None, not 1.",
            close_to(down),
        ),
        Hint(
            "A block of the output was never written: the grid's axes must come in the order of "
            "the index map's arguments, 2 items and 3 blocks of rows.",
            has_nan,
        ),
    )
    got = run(batched, x, call="batched(x)")
    # A softmax in float32: the exponential's error, and as much again for the sum.
    agree(got, _softmax(x64, axis=2), call="batched(x)", rtol=1e-5, atol=0, hints=hints)
    (call,) = trace(batched, (x,)).kernels
    if call.params["grid_mapping"].vmapped_dims:
        raise AssertionError(
            "the numbers are right, and jax.vmap has written the blocks: write the grid (2, 3) "
            "and a three-dimensional BlockSpec yourself"
        )
    return climbs(
        batched,
        x,
        reference=lambda x: _softmax(np.asarray(x, np.float64), axis=2),
        rungs=("simulate", "lower"),  # interpreted above
        name=getattr(batched, "__name__", "batched"),
    )
