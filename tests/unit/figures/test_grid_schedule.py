"""The schedule figure: what it says is what the call's index maps say."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_rungs.figures import bytes_fetched, grid_schedule
from pallas_rungs.kernels.flash_attention_forward import flash_attention_forward
from pallas_rungs.kernels.softmax import softmax
from unit.figures.read_back import parsed, words

X = jax.ShapeDtypeStruct((1, 512, 64), jnp.float32)
SEEN = np.tri(512).reshape(4, 128, 4, 128).mean(axis=(1, 3))


def attention(causal):
    return partial(flash_attention_forward, causal=causal, block=(128, 128))


@cache
def clamped():
    return schedule(causal=True)


def schedule(causal, **options):
    return grid_schedule(
        attention(causal), X, X, X, **{"operand": "k", "share": SEEN, "alt": "a"} | options
    )


def cells(figure):
    """The words in the cells, row by row, the axes' names left out."""
    return np.array(words(figure.panels[0])[3:]).reshape(4, 4).tolist()


def test_without_a_clamp_every_program_fetches_its_own_block():
    assert cells(schedule(causal=False)) == [["↓k 0", "↓k 1", "↓k 2", "↓k 3"]] * 4


def test_with_a_clamp_a_skipped_program_holds_the_block_that_is_there():
    assert cells(clamped()) == [
        ["↓k 0", "k 0", "k 0", "k 0"],
        ["k 0", "↓k 1", "k 1", "k 1"],
        ["↓k 0", "↓k 1", "↓k 2", "k 2"],
        ["↓k 0", "↓k 1", "↓k 2", "↓k 3"],
    ]


def test_operands_take_the_names_that_are_given():
    named = schedule(causal=False, operand="b", names=("a", "b", "c", "d", "e"))
    assert cells(named)[0] == ["↓b 0", "↓b 1", "↓b 2", "↓b 3"]
    with pytest.raises(ValueError, match="no operand 'k'; there are: a, b, c"):
        schedule(causal=False, names=("a", "b", "c", "d", "e"))


def test_frames_tell_what_computes():
    frames = list(parsed(clamped().panels[0]).iter("rect"))
    dashed = np.array([e.get("stroke-dasharray") is not None for e in frames]).reshape(4, 4)
    np.testing.assert_array_equal(dashed, SEEN == 0)
    hatched = len(list(parsed(clamped().panels[0]).iter("path")))
    assert hatched == 4  # the blocks on the diagonal


def test_the_key_counts_and_the_description_tells():
    figure = clamped()
    assert figure.key[-1][1] == "fetches a block of k: 9 of 16 programs"
    desc = figure.panels[0].desc
    assert "(0, 0) computes with a mask, fetches k 0; (0, 1) skips, holds k 0" in desc
    assert desc.endswith("(3, 2) computes, fetches k 2; (3, 3) computes with a mask, fetches k 3.")


def test_axes_are_named():
    assert words(schedule(causal=True, axes=("j", "i")).panels[0])[:2] == ["i →", "j"]


def test_text_is_large_enough_for_a_phone():
    drawing = clamped().panels[0]
    assert drawing.width <= 340
    sizes = [float(e.get("font-size")) for e in parsed(drawing).iter("text")]
    assert min(sizes) >= 11


def test_fetches_and_bytes_are_counted():
    block = 128 * 64 * 4
    assert bytes_fetched(attention(causal=True), X, X, X) == {
        "q": (4, 4 * block),
        "k": (9, 9 * block),
        "v": (9, 9 * block),
    }
    half = jax.ShapeDtypeStruct((1, 512, 64), jnp.bfloat16)
    assert bytes_fetched(attention(causal=False), half, half, half)["k"] == (16, 8 * block)


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="no operand 'w'; there are: q, k, v, o, lse"):
        schedule(causal=True, operand="w")
    with pytest.raises(ValueError, match=r"share must be \(4, 4\) numbers from 0 to 1"):
        schedule(causal=True, share=SEEN[:2])
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        schedule(causal=True, share=SEEN + 1)
    long = jax.ShapeDtypeStruct((1, 1152, 64), jnp.float32)
    with pytest.raises(ValueError, match="the last of at most 8"):
        grid_schedule(
            attention(causal=True), long, long, long, operand="k", share=np.ones((9, 9)), alt="a"
        )
    row = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    with pytest.raises(ValueError, match=r"grid \(1,\): the last two axes are drawn"):
        grid_schedule(softmax, row, operand="x", share=np.ones((1, 1)), alt="a")
