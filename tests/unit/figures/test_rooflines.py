"""Rooflines, read back from the drawing."""

import math
import re

import pytest

from pallas_rungs.figures import Figure, Roof, rooflines
from unit.figures.read_back import parsed, words

SMALL = Roof("small", 1e3, 10)
LARGE = Roof("large", 1e5, 20)
POINTS = (("sum", 0.5), ("product", 200.0))


def drawn(*roofs: Roof, points=POINTS) -> Figure:
    return rooflines(roofs or (SMALL, LARGE), points, alt="Two roofs.")


def roof_path(figure: Figure, panel: int) -> list[tuple[float, float]]:
    (path,) = [e for e in parsed(figure.panels[panel]).iter("path") if e.get("stroke-width") == "2"]
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d"))]


def ticks(figure: Figure, panel: int) -> dict[str, tuple[float, float]]:
    return {
        "".join(e.itertext()): (float(e.get("x")), float(e.get("y")))
        for e in parsed(figure.panels[panel]).iter("text")
    }


@pytest.mark.parametrize(("panel", "roof"), [(0, SMALL), (1, LARGE)])
def test_the_roof_rises_to_the_ridge_and_is_level_from_there(panel, roof):
    figure = drawn()
    (x0, y0), (x1, y1), (x2, y2) = roof_path(figure, panel)
    named = ticks(figure, panel)
    decade = named["10²"][0] - named["10"][0]
    at_10 = named["10"][0]
    assert x1 == pytest.approx(at_10 + (math.log10(roof.ridge) - 1) * decade, abs=0.3)
    assert y1 == y2
    assert x0 < x1 < x2
    assert y0 > y1
    assert f"ridge {roof.ridge:.0f}" in words(figure.panels[panel])


def test_points_lie_on_the_roof():
    figure = drawn()
    root = parsed(figure.panels[0])
    (circle,) = root.iter("circle")
    (rect,) = root.iter("rect")
    (x0, y0), (x1, y1), _ = roof_path(figure, 0)
    cx, cy = float(circle.get("cx")), float(circle.get("cy"))
    assert (cy - y0) / (cx - x0) == pytest.approx((y1 - y0) / (x1 - x0), rel=0.02)
    assert float(rect.get("y")) + 3.5 == pytest.approx(y1, abs=0.11)


def test_both_drawings_have_the_same_axes_and_say_the_bound_in_words():
    figure = drawn()
    assert [w for w in words(figure.panels[0])[2:] if "ridge" not in w] == [
        w for w in words(figure.panels[1])[2:] if "ridge" not in w
    ]
    assert "sum, 0.5 a byte, is left of the ridge: at most 0.50%." in figure.panels[0].desc
    assert "product, 200 a byte, is right of the ridge: at most 100.00%." in figure.panels[0].desc
    assert "product, 200 a byte, is left of the ridge: at most 4.00%." in figure.panels[1].desc


def test_everything_lies_inside_the_drawing_and_is_large_enough():
    for panel in drawn().panels:
        assert panel.width <= 328
        for element in parsed(panel).iter():
            for x in (element.get("x"), element.get("cx")):
                assert x is None or 0 <= float(x) <= panel.width
            for y in (element.get("y"), element.get("cy")):
                assert y is None or 0 <= float(y) <= panel.height
        assert all(float(e.get("font-size", "0")) >= 11 for e in parsed(panel).iter("text"))


@pytest.mark.parametrize(
    ("roofs", "points", "match"),
    [
        ((), POINTS, "a roof and a point"),
        ((SMALL,), (), "a roof and a point"),
        ((SMALL,), tuple((str(i), 1.0) for i in range(7)), "7 points cannot be told apart"),
        ((SMALL,), (("none", 0.0),), "is 0.0"),
        ((Roof("dead", 0, 1),), POINTS, "is 0,"),
    ],
)
def test_what_cannot_be_drawn_is_refused(roofs, points, match):
    with pytest.raises(ValueError, match=match):
        rooflines(roofs, points, alt="x")
