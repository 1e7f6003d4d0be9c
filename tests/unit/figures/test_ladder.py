"""The ladder, the matrix and the grid walk show the data they are given."""

import xml.etree.ElementTree as ET

import pytest

from pallas_rungs.figures import grid_walk, ladder_matrix, ladder_picture
from pallas_rungs.figures.climbers import climbers
from pallas_rungs.figures.glyphs import CAUGHT, RUNGS, STATUSES, first_caught, glyph
from pallas_rungs.ladder.status import Rung, Status
from unit.figures.read_back import parsed, words

FIVE = RUNGS[:5]
ROWS = {
    "sound": dict.fromkeys(FIVE, "passed"),
    "sly": dict.fromkeys(FIVE, "passed") | {"interpret": "unchecked", "simulate": "tool cannot"},
    "off by a block": dict.fromkeys(FIVE, "passed") | {"interpret": "wrong", "simulate": "refused"},
    "too large": dict.fromkeys(FIVE, "passed") | {"compile": "crashed"},
}


def test_rungs_and_statuses_are_those_of_the_ladder():
    assert tuple(map(str, Rung)) == RUNGS
    assert set(map(str, Status)) == set(STATUSES)
    assert {str(s) for s in Status if s.blames_kernel} == CAUGHT


def test_the_first_rung_that_blames_the_kernel_catches_it():
    assert first_caught(ROWS["off by a block"]) == "interpret"
    assert first_caught(ROWS["sly"]) is None
    assert first_caught({Rung.COMPILE: Status.REFUSED, Rung.TRACE: Status.PASSED}) == "compile"


def test_every_status_has_a_shape_of_its_own():
    shapes = {dict(glyph(status, 0, 0).attributes)["d"] for status in STATUSES}
    assert len(shapes) == len(STATUSES)


def test_kernels_stand_in_order_of_how_high_they_get():
    assert [c.name for c in climbers(ROWS, ["sound"])] == [
        "sound", "sly", "too large", "off by a block",
    ]  # fmt: skip


def test_the_picture_names_each_kernel_and_what_caught_it():
    figure = ladder_picture(ROWS, alt="a ladder", healthy=["sound"])
    wide, narrow = figure.panels
    assert "sound" + "passes every rung tried" in words(wide)
    assert "sly" + "caught by none" in words(wide)
    assert "off by a block" + "wrong" in words(wide)
    assert "crashed (compile)" in words(narrow)
    assert "off by a block: wrong, first at interpret." in wide.desc == narrow.desc
    assert "not tried here" in words(wide)
    ET.fromstring(figure._repr_html_())


def test_kernels_caught_higher_stand_higher():
    wide = ladder_picture(ROWS, alt="a").panels[0]
    marks = [c for c in parsed(wide).iter("circle") if c.get("fill") == "var(--f-bad)"]
    heights = [float(c.get("cy")) for c in marks]
    assert len(heights) == 2
    assert heights[0] < heights[1]
    rungs = {w: i for i, w in enumerate(words(wide)) if w in RUNGS}
    assert len(rungs) == 6


@pytest.mark.parametrize("count", [1, 8, 20])
def test_nothing_is_drawn_outside_the_frame(count):
    rows = {f"kernel number {i} of many": {"trace": "refused"} for i in range(count)}
    rows["one"] = dict.fromkeys(RUNGS, "passed")
    for svg in ladder_picture(rows, alt="a").panels:
        for e in parsed(svg).iter():
            for name, limit in (
                ("x", svg.width),
                ("cx", svg.width),
                ("y", svg.height),
                ("cy", svg.height),
            ):
                if e.get(name) is not None and e.tag != "tspan":
                    assert 0 <= float(e.get(name)) <= limit, (e.tag, e.attrib)


@pytest.mark.parametrize(
    ("rows", "healthy", "said"),
    [
        ({}, (), "no rows"),
        ({"a": {}}, (), "'a' was tried on no rung"),
        ({"a": {"roof": "passed"}}, (), "no rung 'roof'"),
        ({"a": {"trace": "fine"}}, (), "no status 'fine'"),
        ({"a": {"trace": "passed"}}, ("b",), "healthy names no row: b"),
        ({"a": {"trace": "wrong"}}, ("a",), "called healthy, but trace says 'wrong'"),
    ],
)
def test_rows_that_make_no_sense_are_refused(rows, healthy, said):
    with pytest.raises(ValueError, match=said):
        ladder_picture(rows, alt="a", healthy=healthy)


def test_the_matrix_keeps_the_order_and_sets_off_the_first_that_caught():
    table = ladder_matrix(ROWS, alt="kernels by rungs")
    root = ET.fromstring(table._repr_html_())
    rows = list(root.iter("tr"))[1:]
    assert [row.findtext("th") for row in rows] == list(ROWS)
    caught = [[td.get("class") for td in row.iter("td")].index("pr-caught") for row in rows[2:]]
    assert caught == [FIVE.index("interpret"), FIVE.index("compile")]
    assert all(td.get("class") is None for row in rows[:2] for td in row.iter("td"))
    assert "".join(list(rows[2].iter("td"))[1].itertext()) == "wrong"
    assert root.find("div").get("aria-label") == "kernels by rungs"
    assert repr(ladder_picture(ROWS, alt="x", style="matrix")) == repr(table)
    with pytest.raises(ValueError, match="style is 'pie'"):
        ladder_picture(ROWS, alt="x", style="pie")


def test_the_walk_numbers_programs_with_the_last_axis_fastest():
    loops, plane = grid_walk((2, 3), alt="a").panels
    assert words(loops) == ["for i in range(2):", "for j in range(3):", "kernel(i, j)"]
    assert [w for w in words(plane) if w.isdigit()] == list("012345")
    assert "(1, 0) at step 3" in plane.desc


def test_a_recorded_order_is_drawn_as_it_was():
    plane = grid_walk((2, 2), order=[(1, 1), (0, 0)], alt="a").panels[1]
    assert "(1, 1) at step 0, (0, 0) at step 1." in plane.desc
    assert sum(r.get("stroke-dasharray") is not None for r in parsed(plane).iter("rect")) == 2


def test_three_axes_are_drawn_as_planes():
    figure = grid_walk((2, 1, 2), alt="a", axes=("b", "i", "k"))
    assert [words(p)[0] for p in figure.panels[1:]] == ["b = 0", "b = 1"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grid": ()}, "one to three axes"),
        ({"grid": (2, 0)}, "one to three axes of at least one program"),
        ({"grid": (100, 100)}, "10000 programs"),
        ({"grid": (2,), "order": [(2,)]}, r"visits \(2,\), which is not in the grid"),
        ({"grid": (2,), "order": [(1,), (1,)]}, "twice"),
        ({"grid": (2,), "axes": ("i", "j")}, "axes names 2 axes"),
    ],
)
def test_walks_that_cannot_be_drawn_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        grid_walk(**options, alt="a")
