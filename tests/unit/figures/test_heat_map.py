"""Heat maps, read back from the drawing."""

import pytest

from pallas_rungs.figures import Cell, Figure, HeatMap, heat_maps
from pallas_rungs.figures.heat_map import shade_of
from unit.figures.read_back import parsed, words

CELLS = {
    ("8", "128"): Cell(4.0, "4.00", "slow"),
    ("8", "256"): Cell(1.0, "1.00", outlined=True),
    ("16", "128"): Cell(2.0, "2.00"),
    ("16", "256"): Cell(None, "refused", "18 MiB"),
}
MAP = HeatMap("v5e", ("8", "16"), ("128", "256"), CELLS)


def drawn(*maps: HeatMap, **more) -> Figure:
    return heat_maps(maps or (MAP,), across="bn", down="bm", alt="Four.", outlined="best", **more)


def opacities(figure: Figure) -> list[float]:
    rects = parsed(figure.panels[0]).iter("rect")
    return [float(it.get("fill-opacity")) for it in rects if it.get("fill-opacity")]


def test_each_cell_says_its_figure_and_what_is_slower_is_darker():
    figure = drawn()
    said = words(figure.panels[0])
    for label in ("4.00", "slow", "1.00", "2.00", "refused", "18 MiB", "bn →", "bm ↓", "v5e"):
        assert label in said
    slow, fast, middle = opacities(figure)  # the refused one has no shade
    assert fast < middle < slow == 0.45
    assert middle == pytest.approx((fast + slow) / 2, abs=0.01), "2 lies midway from 1 to 4"


def test_a_refused_cell_is_hatched_and_a_best_one_outlined():
    root = parsed(drawn().panels[0])
    assert len(list(root.iter("path"))) == 1
    outlines = [it for it in root.iter("rect") if it.get("stroke-width") == "3"]
    assert len(outlines) == 1
    (best,) = outlines
    label = next(it for it in root.iter("text") if "".join(it.itertext()) == "1.00")
    assert float(best.get("x")) < float(label.get("x")) < float(best.get("x")) + 62


def test_readers_who_hear_it_are_told_every_cell_in_its_row():
    described = drawn().panels[0].desc
    assert described == (
        "bm 8, by bn: 128: 4.00, slow; 256: 1.00 (outlined). "
        "bm 16, by bn: 128: 2.00; 256: refused, 18 MiB."
    )


def test_several_maps_share_their_shades():
    other = HeatMap("v6e", ("8",), ("128",), {("8", "128"): Cell(16.0, "16")})
    assert opacities(drawn(MAP, other)) != opacities(drawn(MAP))
    assert opacities(drawn(MAP, other, worst=4.0)) == opacities(drawn(MAP))
    assert shade_of(1.0, 1.0, 1.0) == shade_of(1.0, 1.0, 4.0)


def test_the_drawing_has_room_for_all_of_its_cells():
    panel = drawn().panels[0]
    for it in parsed(panel).iter("rect"):
        assert float(it.get("x")) + float(it.get("width")) <= panel.width
        assert float(it.get("y")) + float(it.get("height")) <= panel.height


@pytest.mark.parametrize(
    ("maps", "said"),
    [
        ((), "at least one map"),
        ((HeatMap("a", (), ("1",), {}),), "no row or no column"),
        ((HeatMap("a", ("1",), ("1",), {}),), r"no cell for \('1', '1'\)"),
        ((HeatMap("a", ("1",), ("1",), {("1", "1"): Cell(0.0, "0")}),), "no positive figure"),
    ],
)
def test_a_map_that_cannot_be_drawn_is_one_clear_error(maps, said):
    with pytest.raises(ValueError, match=said):
        heat_maps(maps, across="bn", down="bm", alt="None.", outlined="best")
