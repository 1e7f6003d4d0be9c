"""Lifetimes of blocks: what is drawn and counted is what the index maps say."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.figures import block_lifetimes, times_moved
from pallas_rungs.figures.calls import read_call
from pallas_rungs.figures.lifetimes import stays
from unit.figures.read_back import parsed, words


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


def test_the_drawing_has_a_bar_for_each_stay_where_it_belongs():
    figure = block_lifetimes(matmul, X, Y, alt="alt")
    (drawing,) = figure.panels
    assert words(drawing) == [
        *("step", *map(str, range(6))),
        *("x", "0,0", "1,0"),
        *("y", "0,0", "0,1", "0,2", "0,0", "0,1", "0,2"),
        *("o", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2"),
    ]
    bars = [(float(r.get("x")), float(r.get("width"))) for r in parsed(drawing).iter("rect")]
    assert len(bars) == 2 + 6 + 6
    (x0, long), (x1, _), (y0, short) = bars[:3]
    assert x0 == y0
    assert long + 3 == pytest.approx(3 * (short + 3), abs=0.3)
    assert x1 == pytest.approx(x0 + long + 3, abs=0.2)
    assert "x: block 0,0 at steps 0 to 2, block 1,0 at steps 3 to 5;" in str(drawing)
    assert drawing.width <= 360
    assert all(float(t.get("font-size")) >= 11 for t in parsed(drawing).iter("text"))


def test_inputs_and_outputs_are_told_apart_by_the_key():
    figure = block_lifetimes(matmul, X, Y, alt="alt", names=("left", "right", "product"))
    assert [words for _, words in figure.key] == ["a block of an input", "a block of an output"]
    assert "product" in words(figure.panels[0])
    shades = [r.get("fill") for r in parsed(figure.panels[0]).iter("rect")]
    assert len(set(shades[:8])) == 1
    assert len(set(shades)) == 2


def test_a_label_that_does_not_fit_is_left_out():
    wide = jax.ShapeDtypeStruct((96, 64), jnp.float32), jax.ShapeDtypeStruct((64, 128), jnp.float32)
    figure = block_lifetimes(matmul, *wide, alt="alt")
    assert "11,0" not in words(figure.panels[0])
    assert "9,0" in words(figure.panels[0])


def test_a_grid_that_is_too_long_is_refused():
    tall = jax.ShapeDtypeStruct((13 * 8, 64), jnp.float32)
    with pytest.raises(ValueError, match=r"grid \(13, 3\) has 39 steps; at most 12 fit"):
        block_lifetimes(matmul, tall, Y, alt="alt")
