"""Curves over logarithmic axes, read back from the drawing."""

import math
import re
import xml.etree.ElementTree as ET

import pytest

from pallas_rungs.figures import Curve, Figure, curves
from pallas_rungs.figures.curves import power_of_ten
from unit.figures.read_back import parsed, words

ONE = Curve("measured", (1, 10, 1000), (1e-7, 1e-5, 1e-1))
LIMIT = Curve("its bound", (1, 1000), (1e-6, 1.0), bound=True)
OTHER = Curve("another", (1, 1000), (2e-8, 2e-8))


def drawn(*given: Curve) -> Figure:
    return curves(given or (ONE, LIMIT, OTHER), x="offset", y="error", alt="Errors rise.")


def paths(figure: Figure, panel: int = 0) -> list[ET.Element]:
    """The lines of the curves: the only paths of that width."""
    return [e for e in parsed(figure.panels[panel]).iter("path") if e.get("stroke-width") == "2"]


def points(path: ET.Element) -> list[tuple[float, float]]:
    pairs = re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", ""))
    return [(float(x), float(y)) for x, y in pairs]


@pytest.mark.parametrize("panel", [0, 1])
def test_points_lie_where_their_logarithms_are(panel: int) -> None:
    figure = drawn()
    ticks = {
        "".join(e.itertext()): (float(e.get("x", "")), float(e.get("y", "")))
        for e in parsed(figure.panels[panel]).iter("text")
    }
    x0, x3 = ticks["1"][0], ticks["10³"][0]
    (first, second, last) = points(paths(figure, panel)[0])
    assert first[0] == pytest.approx(x0, abs=0.11)
    assert last[0] == pytest.approx(x3, abs=0.11)
    assert (second[0] - first[0]) * 3 == pytest.approx(last[0] - first[0], abs=0.4)
    assert (first[1] - second[1]) * 2 == pytest.approx(second[1] - last[1], abs=0.4)
    assert last[1] < second[1] < first[1]


def test_every_curve_has_a_marker_of_its_own_and_bounds_have_none() -> None:
    root = parsed(drawn().panels[0])
    assert len(list(root.iter("circle"))) == 3
    assert len(list(root.iter("rect"))) == 2
    lines = paths(drawn())
    assert [line.get("stroke-dasharray") is not None for line in lines] == [False, True, False]
    inks = [line.get("stroke") for line in lines]
    assert inks[0] == inks[1] != inks[2]


def test_six_curves_have_six_shapes() -> None:
    figure = drawn(*(Curve(str(i), (1, 10), (1, 2 + i)) for i in range(6)))
    root = ET.fromstring(figure._repr_html_())
    marks = [ET.tostring(li.find("svg")[1]) for li in root.iter("li")]  # type: ignore[index]
    assert len(set(marks)) == 6
    with pytest.raises(ValueError, match="7 curves cannot be told apart; 6 can"):
        drawn(*(Curve(str(i), (1, 10), (1, 2)) for i in range(7)))


def test_everything_lies_inside_the_drawing_and_is_large_enough() -> None:
    for panel in drawn().panels:
        root = parsed(panel)
        for path in (e for e in root.iter("path")):
            for x, y in points(path):
                assert 0 <= x <= panel.width
                assert 0 <= y <= panel.height
        assert all(float(e.get("font-size", "0")) >= 11 for e in root.iter("text"))
    assert drawn().panels[1].width <= 328


def test_axes_name_decades_and_no_more_than_there_is_room_for() -> None:
    wide = words(drawn().panels[0])
    assert {"error", "offset", "1", "10", "10²", "10³", "10⁻⁸"} <= set(wide)
    far = drawn(Curve("far", (1e-9, 1e12), (1e-20, 1e20)))
    assert [len(words(panel)) for panel in far.panels] == [19, 15]
    flat = drawn(Curve("flat", (2, 3), (5, 5)))
    assert {"1", "10"} <= set(words(flat.panels[0]))


def test_the_description_tells_the_ends() -> None:
    assert "measured: from 1e-07 at 1 to 0.1 at 1000." in drawn().panels[0].desc
    assert [words for _, words in drawn().key] == ["measured", "its bound", "another"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "a figure needs a curve"),
        ((LIMIT, ONE), "a bound comes after the curve that it bounds"),
        ((Curve("c", (1,), (1,)),), "'c' has 1 places and 1 values"),
        ((Curve("c", (1, 2), (1, 2, 3)),), "'c' has 2 places and 3 values"),
        ((Curve("c", (1, 2), (1, 0)),), "'c' holds 0, and a logarithmic axis shows positive"),
        ((Curve("c", (1, math.inf), (1, 1)),), "'c' holds inf"),
        ((Curve("c", (1, 2), (1, math.nan)),), "'c' holds nan"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: tuple[Curve, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        curves(given, x="x", y="y", alt="a")


def test_powers_of_ten_read_well() -> None:
    assert [power_of_ten(n) for n in (-12, -1, 0, 1, 2, 10)] == [
        "10⁻¹²",
        "10⁻¹",
        "1",
        "10",
        "10²",
        "10¹⁰",
    ]


POINTS = Curve("kernels", (30, 1, 2), (0.5, 4, 3), joined=False)


def test_points_are_not_joined_and_may_stand_in_any_order() -> None:
    figure = drawn(POINTS)
    assert paths(figure) == []
    assert len(list(parsed(figure.panels[0]).iter("circle"))) == 3
    assert "kernels: 3 points, from 0.5 to 4, at 1 to 30." in figure.panels[0].desc
    assert "M0 8H30" not in str(figure.key[0][0])


def test_a_line_needs_two_points_and_points_need_one() -> None:
    drawn(Curve("one kernel", (1,), (2,), joined=False))
    with pytest.raises(ValueError, match="has 1 places and 1 values"):
        drawn(Curve("one kernel", (1,), (2,)))
    with pytest.raises(ValueError, match="has 0 places and 0 values"):
        drawn(Curve("no kernel", (), (), joined=False))


@pytest.mark.parametrize("panel", [0, 1])
def test_the_line_of_equality_joins_equal_decades(panel: int) -> None:
    figure = curves((POINTS,), x="measured", y="estimated", alt="Near.", equal="equal")
    (line,) = paths(figure, panel)
    ticks = [
        ("".join(e.itertext()), float(e.get("x", "")), float(e.get("y", "")), e.get("text-anchor"))
        for e in parsed(figure.panels[panel]).iter("text")
    ]
    across = {name: x for name, x, _, anchor in ticks if anchor == "middle"}
    up = {name: y - 4 for name, _, y, anchor in ticks if anchor == "end"}
    start, end = points(line)
    assert start == pytest.approx((across["1"], up["1"]), abs=0.1)
    assert end == pytest.approx((across["10"], up["10"]), abs=0.1)
    assert figure.key[-1][1] == "equal"
    assert len(drawn(POINTS).key) == 1
