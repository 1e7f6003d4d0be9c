"""The figure of visits to output blocks, read back from its drawing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.bugs import reduction_axis_outside
from pallas_rungs.figures import block_visits
from pallas_rungs.figures.calls import read_call
from pallas_rungs.figures.visits import MOST_STEPS, stays_by_block
from unit.figures.read_back import fills, parsed, words

X = np.zeros((256, 256), np.float32)
NAMES = ("x", "y", "out")


def sums(x, steps=3):
    return pl.pallas_call(
        lambda x_ref, o_ref: None,
        grid=(2, steps),
        in_specs=[pl.BlockSpec((8, 128), lambda j, i: (i, j))],
        out_specs=pl.BlockSpec((1, 128), lambda j, i: (0, j)),
        out_shape=jax.ShapeDtypeStruct((1, 256), jnp.float32),
    )(x)


def marks(figure):
    return [words for _, words in figure.key]


def test_stays_of_consecutive_steps_are_one():
    call = read_call(reduction_axis_outside.fixed, X, X, names=NAMES)
    held = stays_by_block(call.operands[-1])
    assert held == {
        (0, 0): [range(0, 2)],
        (0, 1): [range(2, 4)],
        (1, 0): [range(4, 6)],
        (1, 1): [range(6, 8)],
    }


def test_a_block_that_comes_back_has_two_stays():
    call = read_call(reduction_axis_outside.broken, X, X, names=NAMES)
    held = stays_by_block(call.operands[-1])
    assert held[0, 0] == [range(0, 1), range(4, 5)]
    assert held[1, 1] == [range(3, 4), range(7, 8)]


def test_one_bar_for_each_block_in_the_right_order():
    figure = block_visits(reduction_axis_outside.fixed, X, X, alt="a", names=NAMES)
    (panel,) = figure.panels
    drawn = words(panel)
    assert drawn[:9] == ["i", *"00001111"]
    assert drawn[9:18] == ["j", *"00110011"]
    assert drawn[18:27] == ["k", *"01010101"]
    assert drawn[27:] == ["out (0, 0)", "out (0, 1)", "out (1, 0)", "out (1, 1)"]
    bars = [e for e in parsed(panel).iter("rect") if "fill-1" in e.get("fill", "")]
    lefts = [float(bar.get("x")) for bar in bars]
    assert len(bars) == 4
    assert lefts == sorted(lefts)
    assert not any("bad" in fill for fill in fills(panel))
    assert marks(figure) == ["first visit", "last visit"]
    assert "Block (0, 1) of out is held in steps 2–3." in panel.desc


def test_returns_are_marked_and_told():
    figure = block_visits(reduction_axis_outside.broken, X, X, alt="a", names=NAMES, axes="kij")
    (panel,) = figure.panels
    assert [w for w in words(panel) if w in "ijk"] == ["k", "i", "j"]
    assert sum("bad-bg" in fill for fill in fills(panel)) == 4
    assert marks(figure) == ["first visit", "comes back to a block that it had left"]
    assert "Block (0, 0) of out is held in step 0, and again in step 4." in panel.desc


def test_a_return_of_two_steps_keeps_its_last_visit():
    def back(x):
        return pl.pallas_call(
            lambda x_ref, o_ref: None,
            grid=(2, 2, 2),
            in_specs=[pl.BlockSpec((8, 128), lambda a, j, b: (a, j))],
            out_specs=pl.BlockSpec((8, 128), lambda a, j, b: (0, j)),
            out_shape=jax.ShapeDtypeStruct((8, 256), jnp.float32),
        )(x)

    figure = block_visits(back, jnp.zeros((16, 256)), alt="a", names=("x", "out"))
    assert marks(figure) == [
        "first visit",
        "last visit",
        "comes back to a block that it had left",
    ]
    assert "steps 0–1, and again in steps 4–5" in figure.panels[0].desc


def test_text_is_large_enough_on_a_phone():
    x = jnp.zeros((8 * 12, 256))
    for figure in (
        block_visits(reduction_axis_outside.fixed, X, X, alt="a", names=NAMES),
        block_visits(lambda x: sums(x, 12), x, alt="a"),
    ):
        (panel,) = figure.panels
        shrunk = min(1, 324 / panel.width)
        sizes = [float(e.get("font-size")) for e in parsed(panel).iter("text")]
        assert min(sizes) * shrunk >= 11


def test_an_operand_is_chosen_by_name_and_the_first_output_is_the_default():
    x = jnp.zeros((24, 256))
    named = block_visits(sums, x, alt="a", names=("x", "sums"), operand="x")
    assert words(named.panels[0])[-6:] == [f"x ({i}, {j})" for j in range(2) for i in range(3)]
    default = block_visits(sums, x, alt="a", names=("x", "sums"))
    assert words(default.panels[0])[-2:] == ["sums (0, 0)", "sums (0, 1)"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operand": "z"}, "no operand 'z'; there are: x, o"),
        ({"axes": "i"}, "axes names 1 axes, but the grid has 2"),
        ({"alt": " "}, "alt is empty"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        block_visits(sums, jnp.zeros((24, 256)), **{"alt": "a", "names": ("x", "o"), **options})


def test_too_many_steps_are_refused():
    steps = MOST_STEPS // 2 + 1
    with pytest.raises(ValueError, match=f"{2 * steps} steps; at most {MOST_STEPS}"):
        block_visits(lambda x: sums(x, steps), jnp.zeros((8 * steps, 256)), alt="a")
