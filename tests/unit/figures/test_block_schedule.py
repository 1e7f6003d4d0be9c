"""The schedule of blocks: what is drawn and counted is what the index maps say, step by step."""

import itertools
import re
import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pallas_rungs.figures import block_moves, block_schedule
from pallas_rungs.figures.calls import read_call
from pallas_rungs.figures.stays import stays
from pallas_rungs.kernels.gather_blocks import gather_blocks
from pallas_rungs.kernels.matmul import matmul
from unit.figures.read_back import parsed, words

X = jax.ShapeDtypeStruct((48, 128), jnp.float32)


def drawn(table, **options):
    """The figure of a gather of six blocks by a table."""
    table = jnp.array(table, jnp.int32)
    return block_schedule(gather_blocks, table, X, scalars=(table,), alt="A gather.", **options)


def bars(svg):
    return [r for r in parsed(svg).iter("rect") if r.get("rx") == "4"]


@settings(max_examples=5, deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_a_bar_is_a_run_of_equal_entries(entries):
    groups = [(block, len(list(run))) for block, run in itertools.groupby(entries)]
    table = jnp.array(entries, jnp.int32)
    call = read_call(gather_blocks, table, X, scalars=(table,))
    runs = stays(call.operands[0])
    assert [(run.block, run.last - run.first + 1) for run in runs] == [
        ((block, 0), length) for block, length in groups
    ]
    assert block_moves(gather_blocks, table, X, scalars=(table,)) == {
        "x": len(groups),
        "o": len(entries),
    }
    wide = drawn(entries).panels[0]
    assert len(bars(wide)) == len(groups) + len(entries)
    shown = words(wide)
    at = shown.index("x")
    assert shown[at + 2 : at + 2 + len(groups)] == [str(block) for block, _ in groups]


def test_a_bar_is_as_long_as_its_run():
    wide = drawn([4, 4, 4, 1]).panels[0]
    first, second, *written = (float(bar.get("width")) for bar in bars(wide))
    cell = written[0] + 3
    assert first == pytest.approx(3 * cell - 3, abs=0.2)
    assert second == pytest.approx(cell - 3, abs=0.2)


def test_the_moves_are_told_in_words():
    wide = drawn([4, 4, 4, 4]).panels[0]
    shown = words(wide)
    assert shown[:5] == ["step", "0", "1", "2", "3"]
    assert "1 fetch" in shown
    assert "4 writes" in shown
    desc = parsed(wide).find("desc").text
    assert "x, 1 fetch: block (4, 0) at steps 0 to 3." in desc
    assert "o, 4 writes: block (0, 0) at step 0, block (1, 0) at step 1" in desc


def test_the_same_block_has_the_same_colour_wherever_it_comes_back():
    fills = [bar.get("fill") for bar in bars(drawn([4, 1, 4]).panels[0])][:3]
    assert fills[0] == fills[2] != fills[1]


def test_a_long_schedule_is_wrapped_and_a_broken_run_is_dashed():
    entries = [3] * 30 + [5] * 4
    narrow = drawn(entries).panels[1]
    shown = words(narrow)
    assert shown.count("step") > 1
    assert [w for w in shown if re.fullmatch(r"\d+", w)].count("33") == 2  # step 33, block 33
    of_x = [bar for bar in bars(narrow) if float(bar.get("width")) > 60 or bar.get("fill")]
    assert any(bar.get("stroke-dasharray") for bar in of_x)
    root = ET.fromstring(str(narrow))
    assert float(root.get("width")) <= 324.5
    for bar in bars(narrow):
        assert float(bar.get("x")) + float(bar.get("width")) <= 324.5


def test_text_is_large_enough_on_a_phone():
    for element in parsed(drawn([1, 2, 3]).panels[1]).iter("text"):
        assert float(element.get("font-size")) >= 11


def test_labels_name_the_dimensions_that_have_several_blocks():
    x = jax.ShapeDtypeStruct((16, 256), jnp.float32)
    y = jax.ShapeDtypeStruct((256, 128), jnp.float32)

    def product(x, y):
        return matmul(x, y, block=(8, 128, 128))

    shown = words(block_schedule(product, x, y, alt="A product.").panels[0])
    assert shown[shown.index("x") + 2 :][:4] == ["0,0", "0,1", "1,0", "1,1"]
    assert shown[shown.index("y") + 2 :][:4] == ["0", "1", "0", "1"]
    assert shown[shown.index("o") + 2 :][:2] == ["0", "1"]
    assert block_moves(product, x, y, names=("left", "right", "out")) == {
        "left": 4,
        "right": 4,
        "out": 2,
    }


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="65 steps; at most 64"):
        drawn([0] * 65)
    with pytest.raises(ValueError, match="scalars"):
        block_schedule(gather_blocks, np.zeros(2, np.int32), X, alt="No values.")
    with pytest.raises(ValueError, match="alt is empty"):
        block_schedule(
            gather_blocks, np.zeros(2, np.int32), X, scalars=(np.zeros(2, np.int32),), alt=" "
        )
