"""The timeline of transfers: what is drawn is what the run did."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from pallas_rungs.figures import dma_timeline

LANES = {10: "x, slot 0", 11: "x, slot 1", 20: "out"}


def transfer(flag: int, started: int, begins: int, **other: Any) -> dict[str, Any]:
    times = {"started": started, "begins": begins, "ends": begins + 100, "done": begins + 150}
    return {"flag": flag, "source": "hbm", **times, **other}


TRANSFERS = [transfer(10, 0, 0), transfer(11, 10, 100), transfer(20, 600, 600, source="vmem")]
WAITS = [{"begins": 20, "ends": 150}, {"begins": 700, "ends": 750}]


def drawn(**changed: Any) -> Any:
    given = {
        "transfers": TRANSFERS, "waits": WAITS, "cycles": 800, "lanes": LANES, "alt": "x",
    } | changed  # fmt: skip
    return dma_timeline(given.pop("transfers"), given.pop("waits"), **given)


def test_transfers_and_waits_stand_at_their_cycles() -> None:
    wide = drawn().panels[0]
    scale = (640 - 78 - 1 - 1.5 * 12 * 0.61) / 800
    rects = [dict(it.attributes) for it in wide.body if it.tag == "rect"]
    bars = [it for it in rects if it.get("rx") == "2"]
    assert [float(it["x"]) for it in bars] == pytest.approx(
        [78 + at * scale for at in (0, 100, 600)], abs=0.1
    )
    assert {it["width"] for it in bars} == {bars[0]["width"]}
    assert float(bars[0]["width"]) == pytest.approx(100 * scale, abs=0.1)
    assert bars[2]["fill"] != bars[0]["fill"]
    held = [it for it in rects if float(it["x"]) == pytest.approx(78 + 20 * scale, abs=0.1)]
    assert [float(it["width"]) for it in held] == pytest.approx([130 * scale], abs=0.1)


def test_lanes_are_the_flags_that_are_used_and_the_core() -> None:
    words = [str(it.children[0]) for it in drawn().panels[0].body if it.tag == "text"]
    assert words[:4] == ["x, slot 0", "x, slot 1", "out", "core"]
    assert words[-1] == "cycles, estimated"
    fewer = drawn(transfers=TRANSFERS[:1]).panels[0]
    words = [str(it.children[0]) for it in fewer.body if it.tag == "text"]
    assert words[:2] == ["x, slot 0", "core"]


def test_whoever_hears_the_figure_gets_its_data() -> None:
    desc = drawn().panels[0].desc
    assert "Lane x, slot 1: cycles 100 to 200, done at 250" in desc
    assert "The core waits: cycles 20 to 150; cycles 700 to 750" in desc
    assert "The core waits: never" in drawn(waits=[]).panels[0].desc


@pytest.mark.parametrize("cycles", [7, 800, 30_293, 9_999_999])
def test_the_axis_has_some_ticks_that_do_not_touch(cycles: int) -> None:
    for panel in drawn(waits=[], cycles=cycles).panels:
        ticks = [
            (float(dict(it.attributes)["x"]), str(it.children[0]))
            for it in panel.body
            if it.tag == "text" and str(it.children[0]).isdigit()
        ]
        assert 2 <= len(ticks) <= 10
        assert ticks[-1][0] + len(ticks[-1][1]) * 12 * 0.61 / 2 <= panel.width
        assert all(b[0] - a[0] > 8 * len(b[1]) * 0.61 for a, b in pairwise(ticks))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"transfers": []}, "started no transfers"),
        ({"transfers": TRANSFERS * 30}, "90 transfers; a figure of more than 60"),
        ({"lanes": {10: "x", 20: "out"}}, r"flag 11 has no lane; lanes has \[10, 20\]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drawn(**changed)
