"""The picture of a file: each line drawn once, by its class, and none told by colour alone."""

import pytest

from pallas_rungs.figures import file_account
from unit.figures.read_back import parsed, words

CLASSES = (
    ["blank, comments"] * 10
    + ["imports"] * 10
    + ["explained"] * 20
    + ["blank, comments"]
    + ["explained"] * 19
    + ["folded"] * 30
    + ["unaccounted"]
    + ["skipped"] * 9
)
PARTS = [("alpha", 21, 60), ("beta", 61, 90), ("tiny", 91, 91)]


def drawn(classes=CLASSES, parts=PARTS):
    return file_account(classes, parts, title="A file", alt="A file of a hundred lines.")


def outlines(panel):
    return [rect for rect in parsed(panel).iter("rect") if rect.get("fill") == "none"]


@pytest.mark.parametrize("panel", [0, 1])
def test_runs_follow_each_other_from_the_first_line_to_the_last(panel):
    svg = drawn().panels[panel]
    runs = outlines(svg)
    assert len(runs) == 6  # the blank line among explained ones is drawn with them
    ends = 0.0
    for rect in runs:
        assert float(rect.get("y")) == pytest.approx(ends, abs=0.2)
        ends = float(rect.get("y")) + float(rect.get("height"))
    assert ends == pytest.approx(100 * 5.6, abs=1)
    heights = [float(rect.get("height")) for rect in runs]
    assert heights == pytest.approx([56, 56, 40 * 5.6, 30 * 5.6, 5.6, 9 * 5.6], abs=0.2)


@pytest.mark.parametrize("panel", [0, 1])
def test_what_nobody_accounts_for_sticks_out(panel):
    runs = outlines(drawn().panels[panel])
    lefts = [float(rect.get("x")) for rect in runs]
    assert lefts[4] < min(lefts[:4])
    assert len({*lefts[:4], lefts[5]}) == 1


def test_every_class_has_a_pattern_of_its_own():
    marks = {}
    for mark, name in drawn().key:
        shapes = [child for child in mark.children if child.tag == "path"]
        marks[name.partition(":")[0]] = "".join(dict(s.attributes)["d"] for s in shapes)
    patterned = [path for name, path in marks.items() if name not in ("explained",)]
    assert marks["explained"] == ""
    assert len({*patterned}) == len(patterned)


def test_the_key_counts_blank_lines_apart():
    told = {name.partition(":")[0]: name for _, name in drawn().key}
    assert told["explained"] == "explained: 39 lines, 39.0%"
    assert told["blank, comments"] == "blank, comments: 11 lines, 11.0%"
    assert told["unaccounted"] == "unaccounted: 1 lines, 1.0%"


@pytest.mark.parametrize("panel", [0, 1])
def test_larger_parts_are_named_and_all_are_told(panel):
    svg = drawn().panels[panel]
    assert "alpha" in words(svg)
    assert "beta" in words(svg)
    assert "tiny" not in words(svg)
    assert "tiny, lines 91 to 91: 1 unaccounted" in svg.desc
    assert "alpha, lines 21 to 60: 39 explained, 1 blank, comments" in svg.desc


def test_shares_of_what_the_page_decides_stand_in_one_column():
    root = parsed(drawn().panels[0])
    shares = [t for t in root.iter("text") if "%" in "".join(t.itertext())]
    assert ["".join(t.itertext()) for t in shares] == ["98% explained", "100% folded"]
    assert len({t.get("x") for t in shares}) == 1
    assert not [word for word in words(drawn().panels[1]) if "%" in word]


def test_text_is_legible_on_a_phone_and_inside_the_drawing():
    name = "_a_function_with_a_name_that_is_much_too_long_for_a_phone"
    svg = drawn(parts=[(name, 21, 60)]).panels[1]
    root = parsed(svg)
    assert any(word.endswith("…") for word in words(svg))
    for line in root.iter("text"):
        assert float(line.get("font-size")) >= 11
        if line.get("text-anchor") != "end":
            wide = len("".join(line.itertext())) * 0.61 * float(line.get("font-size"))
            assert float(line.get("x")) + wide <= float(root.get("width")) + 0.2


@pytest.mark.parametrize(
    ("classes", "parts", "message"),
    [
        ([], [], "without lines"),
        (["proved"], [], "class 'proved' of a line is not one of: explained, folded"),
        (["imports"], [("f", 1, 2)], "part 'f' has lines 1 to 2, and the file has 1"),
        (["imports"], [("f", 0, 1)], "part 'f' has lines 0 to 1"),
    ],
)
def test_what_cannot_be_drawn(classes, parts, message):
    with pytest.raises(ValueError, match=message):
        drawn(classes, parts)
