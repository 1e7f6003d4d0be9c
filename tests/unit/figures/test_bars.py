"""Bars have the lengths of their numbers."""

import pytest

from pallas_rungs.figures import bars
from unit.figures.read_back import parsed, words

ROWS = {"once": (1.0, 1.0), "three times": (3.0, 1.5), "nothing": (0.0, 0.0)}


def drawn(rows=ROWS, mark=None):
    return bars(rows, parts=("read", "written"), unit="×", title="bytes", alt="bars", mark=mark)


@pytest.mark.parametrize("panel", [0, 1])
def test_lengths_are_in_proportion(panel):
    root = parsed(drawn().panels[panel])
    lengths = [float(rect.get("width")) for rect in root.iter("rect")]
    unit = lengths[0]
    assert lengths == pytest.approx([unit, unit, 3 * unit, 1.5 * unit, 0, 0], abs=0.2)
    starts = [float(rect.get("x")) for rect in root.iter("rect")]
    assert starts == pytest.approx([0, unit, 0, 3 * unit, 0, 0], abs=0.2)
    assert max(s + n for s, n in zip(starts, lengths, strict=True)) < float(root.get("width"))


def test_totals_names_and_parts_are_told():
    panel = drawn().panels[0]
    assert "three times" in words(panel)
    assert "4.5 ×" in words(panel)
    assert "three times: 3 read, 1.5 written;" in panel.desc


def test_the_mark_stands_at_its_number():
    root = parsed(drawn(mark=1.0).panels[0])
    lines = list(root.iter("line"))
    assert len(lines) == len(ROWS)
    first = next(root.iter("rect"))
    for line in lines:
        assert float(line.get("x1")) == pytest.approx(float(first.get("width")), abs=0.2)
        assert line.get("x1") == line.get("x2")


@pytest.mark.parametrize("panel", [0, 1])
def test_totals_have_room_beside_the_longest_bar(panel):
    long = bars({"a": (9.0, 1.0)}, parts=("x", "y"), unit="× the floor", title="t", alt="a")
    root = parsed(long.panels[panel])
    label = next(e for e in root.iter("text") if "floor" in "".join(e.itertext()))
    end = float(label.get("x")) + len("10 × the floor") * 12 * 0.6
    assert end <= float(root.get("width"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "at least one row"),
        ({"a": (1.0,)}, "row 'a' has 1 parts, and there are 2"),
        ({"a": (1.0, -1.0)}, "row 'a' has a length that no bar can show"),
        ({"a": (1.0, float("nan"))}, "row 'a' has a length that no bar can show"),
    ],
)
def test_rows_that_cannot_be_drawn(rows, message):
    with pytest.raises(ValueError, match=message):
        drawn(rows)


def test_too_many_parts():
    with pytest.raises(ValueError, match="7 parts, and colours for 1 to 6"):
        bars({"a": (1.0,) * 7}, parts="abcdefg", unit="", title="t", alt="a")
