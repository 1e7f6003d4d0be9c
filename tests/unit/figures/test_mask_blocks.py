"""The classes of a mask's blocks, read back from the drawing."""

import pytest

from pallas_rungs.figures import MaskBlocks, mask_blocks
from unit.figures.read_back import parsed, words

BAND = MaskBlocks("band", ((1, 0, 0), (2, 1, 0)))
NAMED = MaskBlocks("named", ((1, 2),), (("0", "3"),))


def drawn(*masks: MaskBlocks):
    return mask_blocks(masks or (BAND,), alt="A band.")


def test_each_class_has_a_pattern_of_its_own_and_its_count():
    panel = drawn().panels[0]
    root = parsed(panel)
    rects = list(root.iter("rect"))
    assert len(rects) == 6
    filled = [it for it in rects if it.get("fill") != "none"]
    assert len(filled) == 1, "the full block"
    assert len(list(root.iter("path"))) == 2, "the partial blocks are hatched"
    assert words(panel)[:2] == ["band", "3 empty, 2 partial, 1 full"]


def test_the_full_block_stands_in_its_row_and_column():
    rects = list(parsed(drawn().panels[0]).iter("rect"))
    places = {(it.get("x"), it.get("y")): it.get("fill") for it in rects}
    xs, ys = (sorted({float(place[axis]) for place in places}) for axis in (0, 1))
    (full,) = [place for place, fill in places.items() if fill != "none"]
    assert (float(full[0]), float(full[1])) == (xs[0], ys[1])
    assert (len(xs), len(ys)) == (3, 2)


def test_readers_who_hear_it_are_told_every_block():
    assert drawn().panels[0].desc == (
        "2 blocks of queries by 3 blocks of keys. blocks of queries 0: partial, empty, empty. "
        "blocks of queries 1: full, partial, empty."
    )
    assert "blocks of queries 0: partial (0), full (3)." in drawn(NAMED).panels[0].desc
    assert words(drawn(NAMED).panels[0])[2:] == ["0", "3"]


def test_the_drawing_has_room_for_its_blocks_and_the_key_for_the_classes():
    figure = drawn(BAND, NAMED)
    for panel in figure.panels:
        for it in parsed(panel).iter("rect"):
            assert float(it.get("x")) + float(it.get("width")) <= panel.width
            assert float(it.get("y")) + float(it.get("height")) <= panel.height
    assert [said for _, said in figure.key] == ["empty", "partial", "full"]


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        ((), "at least one"),
        ((MaskBlocks("a", ()),), "not a rectangle"),
        ((MaskBlocks("a", ((1, 0), (1,))),), "not a rectangle"),
        ((MaskBlocks("a", ((1, 3),)),), "a block of class 3"),
        ((MaskBlocks("a", ((1, 0),), (("0",),)),), "labels of another shape"),
    ],
)
def test_a_mask_that_cannot_be_drawn_is_one_clear_error(masks, said):
    with pytest.raises(ValueError, match=said):
        mask_blocks(masks, alt="None.")
