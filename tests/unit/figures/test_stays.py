"""Stays of blocks: what is counted is what the index maps say."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.figures import block_moves, bytes_fetched, bytes_moved, times_moved
from pallas_rungs.figures.calls import read_call
from pallas_rungs.figures.stays import stays


def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] @ y_ref[...]


def matmul(x, y, *, bm=8, bn=128, swapped=False):
    """A product of rows and columns; `swapped` puts the columns' axis outside."""
    M, K = x.shape
    N = y.shape[1]
    grid = (pl.cdiv(M, bm), pl.cdiv(N, bn))

    def spec(shape, of):
        return pl.BlockSpec(shape, (lambda j, i: of(i, j)) if swapped else of)

    return pl.pallas_call(
        kernel,
        grid=grid[::-1] if swapped else grid,
        in_specs=[spec((bm, K), lambda i, j: (i, 0)), spec((K, bn), lambda i, j: (0, j))],
        out_specs=spec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
    )(x, y)


X = jax.ShapeDtypeStruct((16, 64), jnp.float32)
Y = jax.ShapeDtypeStruct((64, 384), jnp.float32)


def test_a_block_stays_while_nothing_else_is_asked_for():
    x, y, o = read_call(matmul, X, Y).operands
    assert [(s.first, s.last, s.block) for s in stays(x)] == [(0, 2, (0, 0)), (3, 5, (1, 0))]
    assert [(s.first, s.last, s.block) for s in stays(y)] == [
        (n, n, (0, n % 3)) for n in range(6)
    ]  # fmt: skip
    assert [s.block for s in stays(o)] == list(itertools.product(range(2), range(3)))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("M", "N"), [(16, 384), (20, 300), (8, 128)])
def test_what_is_moved_is_counted_step_by_step(swapped, M, N):
    x, y = np.zeros((M, 64), np.float32), np.zeros((64, N), np.float32)

    def run(x, y):
        return matmul(x, y, swapped=swapped)

    call = read_call(run, x, y)
    want = {}
    for operand in call.operands:
        moved, before = 0, None
        for start in map(tuple, operand.starts.tolist()):
            if start != before:
                sizes = zip(start, operand.block, operand.shape, strict=True)
                moved += np.prod([min(s + b, n) - s for s, b, n in sizes])
            before = start
        want[operand.name] = moved / np.prod(operand.shape)
    assert times_moved(run, x, y) == pytest.approx(want)
    assert want["o"] == 1
    bands = -(-N // 128) if swapped else -(-M // 8)
    assert want["x" if swapped else "y"] == pytest.approx(bands)


def test_moves_and_bytes_follow_the_stays():
    assert block_moves(matmul, X, Y) == {"x": 2, "y": 6, "o": 6}
    assert bytes_fetched(matmul, X, Y) == {"x": (2, 2 * 8 * 64 * 4), "y": (6, 6 * 64 * 128 * 4)}
    half = jax.ShapeDtypeStruct(X.shape, jnp.bfloat16)
    assert bytes_fetched(matmul, half, Y, names=("a", "b", "c"))["a"] == (2, 2 * 8 * 64 * 2)


def test_the_steps_of_a_stay_are_in_order():
    x, _, _ = read_call(matmul, X, Y).operands
    assert [list(stay.steps) for stay in stays(x)] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("swapped", [False, True])
def test_bytes_moved_are_elements_moved_by_their_size(swapped):
    def run(x, y):
        return matmul(x, y, swapped=swapped)

    x = jax.ShapeDtypeStruct((20, 64), jnp.bfloat16)
    y = jax.ShapeDtypeStruct((64, 300), jnp.float32)
    moved, times = bytes_moved(run, x, y), times_moved(run, x, y)
    assert moved == {
        "x": times["x"] * 20 * 64 * 2,
        "y": times["y"] * 64 * 300 * 4,
        "o": 20 * 300 * 4,
    }
