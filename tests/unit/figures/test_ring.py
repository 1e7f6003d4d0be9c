"""The picture of a ring: what is drawn as held, and what has just come, read back."""

import numpy as np
import pytest

from pallas_rungs.figures import ring_steps
from pallas_rungs.figures.theme import colour
from unit.figures.read_back import parsed, words


def came(devices, steps):
    return [[(d - s) % devices for d in range(devices)] for s in range(steps + 1)]


def slots(svg, devices):
    """The rectangles as (steps, devices, shares), each (is filled, is framed)."""
    drawn = [
        (e.get("fill") != "none", e.get("stroke-width") == "2.5") for e in parsed(svg).iter("rect")
    ]
    return np.array(drawn).reshape(-1, devices, devices, 2)


@pytest.mark.parametrize(("devices", "steps"), [(2, 1), (4, 3), (4, 2), (6, 5)])
def test_shares_are_filled_where_they_have_been_and_framed_where_they_come(devices, steps):
    table = came(devices, steps)
    for svg in ring_steps(table, alt="a").panels:
        found = slots(svg, devices)
        assert found.shape[0] == steps + 1
        for step in range(steps + 1):
            for device in range(devices):
                held = {row[device] for row in table[: step + 1]}
                filled = set(np.flatnonzero(found[step, device, :, 0]).tolist())
                framed = np.flatnonzero(found[step, device, :, 1]).tolist()
                assert filled == held
                assert framed == ([table[step][device]] if step else [])


def test_each_share_has_its_colour_and_its_number():
    (wide, narrow) = ring_steps(came(4, 3), alt="a").panels
    assert words(wide)[:5] == ["device 0", "device 1", "device 2", "device 3", "step 0"]
    assert words(narrow)[:5] == ["0", "1", "2", "3", "0"]
    filled = [e for e in parsed(wide).iter("rect") if e.get("fill") != "none"]
    assert [e.get("fill") for e in filled[:4]] == [colour(f"fill-{i}") for i in (1, 2, 3, 4)]
    numbers = [w for w in words(wide) if w.isdigit()]
    assert numbers[:4] == ["0", "1", "2", "3"]
    assert len(numbers) == 4 + 8 + 12 + 16


def test_an_arrow_leads_to_each_device_in_each_step():
    wide, _ = ring_steps(came(4, 3), alt="a").panels
    paths = [e.get("d") for e in parsed(wide).iter("path")]
    assert len(paths) == 3 * 4
    # The first device's arrow leaves on the right and comes back on the left: two strokes, wings.
    assert [path.count("M") for path in paths] == [3, 2, 2, 2] * 3


def test_what_is_seen_is_also_told():
    wide, narrow = ring_steps(came(4, 1), alt="shares move on").panels
    assert "Step 0: device 3 starts with share 3." in wide.desc
    assert "Step 1: device 0 receives share 3." in narrow.desc
    assert str(ring_steps(came(4, 1), alt="shares move on")) == "shares move on"
    assert {svg.show for svg in (wide, narrow)} == {"wide", "narrow"}


def test_text_is_large_enough_on_a_phone():
    for svg in ring_steps(came(6, 5), alt="a").panels:
        assert min(float(e.get("font-size")) for e in parsed(svg).iter("text")) >= 11


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([0, 1], "a row for each step"),
        ([[0.0, 1.0]], "must hold integers"),
        ([[0]], "came has 1 devices"),
        ([list(range(7))], "came has 7 devices"),
        ([[0, 2]], "came names device 2; there are 2"),
        ([[-1, 0]], "came names device -1"),
    ],
)
def test_no_picture_of_what_is_no_ring(table, message):
    with pytest.raises(ValueError, match=message):
        ring_steps(table, alt="a")
