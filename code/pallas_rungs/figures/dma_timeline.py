"""When a kernel's transfers are under way, and where the core waits: cycles of an estimate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_rungs.figures.svg import (
    SVG,
    Element,
    Figure,
    el,
    hatch,
    hatched_swatch,
    number,
    swatch,
    text_width,
)
from pallas_rungs.figures.svg import text as words
from pallas_rungs.figures.theme import colour

MOST_TRANSFERS = 60
"""More transfers than this cannot be told apart in one picture."""

_IN, _OUT, _CORE = 1, 2, 3
_LANE, _GUTTER = 26.0, 78.0


def dma_timeline(
    transfers: Sequence[Mapping[str, Any]],
    waits: Sequence[Mapping[str, Any]],
    *,
    cycles: float,
    lanes: Mapping[int, str],
    alt: str,
) -> Figure:
    """Draw the transfers of a run in lanes, and the core's waits below them.

    The horizontal axis counts cycles of the core. They are an estimate, and the figure says so.

    Args:
        transfers: of each `flag`, `started`, `begins`, `ends`, `done` (cycles) and `source`, the
            memory that it reads ("hbm" for one on its way in).
        waits: of each `begins` and `ends`, cycles.
        cycles: length of the run.
        lanes: what the lane of a flag is called; several flags may share a lane.
        alt: what the figure shows, for readers who cannot see it.

    Raises:
        ValueError: there are no transfers, too many for a picture, or one whose flag has no lane.
    """
    if not transfers:
        raise ValueError("the run started no transfers, so there is no timeline to draw")
    if len(transfers) > MOST_TRANSFERS:
        raise ValueError(
            f"the run has {len(transfers)} transfers; a figure of more than {MOST_TRANSFERS} "
            "cannot be read. Draw a smaller grid."
        )
    for transfer in transfers:
        if transfer["flag"] not in lanes:
            raise ValueError(
                f"the flag {transfer['flag']} has no lane; lanes has {sorted(lanes)}: name it there"
            )
    return Figure(
        alt=alt,
        panels=tuple(
            _panel(transfers, waits, cycles, lanes, width, show)
            for width, show in ((640.0, "wide"), (332.0, "narrow"))
        ),
        key=(
            (swatch(_IN), "in the HBM queue, on its way to VMEM"),
            (swatch(_OUT), "in the HBM queue, on its way to HBM"),
            (swatch(_CORE), "the core issues bundles"),
            (hatched_swatch(), "the core waits"),
        ),
    )


def _described(
    transfers: Sequence[Mapping[str, Any]],
    waits: Sequence[Mapping[str, Any]],
    cycles: float,
    lanes: Mapping[int, str],
) -> str:
    parts = [
        f"Lane {lane}: "
        + "; ".join(
            f"cycles {it['begins']:.0f} to {it['ends']:.0f}, done at {it['done']:.0f}"
            for it in transfers
            if lanes[it["flag"]] == lane
        )
        for lane in dict.fromkeys(lanes[it["flag"]] for it in transfers)
    ]
    waited = "; ".join(f"cycles {it['begins']:.0f} to {it['ends']:.0f}" for it in waits)
    return ". ".join([*parts, f"The core waits: {waited or 'never'}", f"End: cycle {cycles:.0f}."])


def _panel(
    transfers: Sequence[Mapping[str, Any]],
    waits: Sequence[Mapping[str, Any]],
    cycles: float,
    lanes: Mapping[int, str],
    width: float,
    show: str,
) -> SVG:
    used = list(dict.fromkeys(name for flag, name in lanes.items() if _is_used(flag, transfers)))
    half_a_label = text_width(f"{cycles:.0f}", 12, mono=True) / 2
    scale = (width - _GUTTER - half_a_label - 1) / cycles
    body: list[Element] = []
    for place, lane in enumerate([*used, "core"]):
        y = 8 + _LANE * place
        body.append(
            el("rect", x=_GUTTER, y=y, width=cycles * scale, height=_LANE - 4,
               fill=colour("panel"))
        )  # fmt: skip
        body.append(words(0, y + 16, lane, size=12.5, fill=colour("text")))
    for it in transfers:
        y = 8 + _LANE * used.index(lanes[it["flag"]])
        body += _transfer(it, y, scale)
    body += _core(waits, cycles, 8 + _LANE * len(used), scale)
    body += _axis(cycles, 8 + _LANE * (len(used) + 1), scale)
    height = 8 + _LANE * (len(used) + 1) + 40
    desc = _described(transfers, waits, cycles, lanes)
    return SVG(width, height, tuple(body), "Transfers and waits", desc, show=show)


def _is_used(flag: int, transfers: Sequence[Mapping[str, Any]]) -> bool:
    return any(it["flag"] == flag for it in transfers)


def _transfer(it: Mapping[str, Any], y: float, scale: float) -> list[Element]:
    """A line from start to done, with a bar while the transfer's bytes pass."""
    tone = _IN if it["source"] == "hbm" else _OUT
    start, begin, end, done = (
        _GUTTER + it[name] * scale for name in ("started", "begins", "ends", "done")
    )
    middle = y + (_LANE - 4) / 2
    return [
        el("path", d=f"M{number(start)} {number(middle)}H{number(done)}"
           f"M{number(done)} {number(middle - 5)}V{number(middle + 5)}",
           fill="none", stroke=colour(str(tone)), stroke_width=1.5),
        el("rect", x=begin, y=y + 3, width=max(end - begin, 1), height=_LANE - 10, rx=2,
           fill=colour(f"fill-{tone}"), stroke=colour(str(tone)), stroke_width=1.5),
    ]  # fmt: skip


def _core(
    waits: Sequence[Mapping[str, Any]], cycles: float, y: float, scale: float
) -> list[Element]:
    drawn = [
        el("rect", x=_GUTTER, y=y + 1, width=cycles * scale, height=_LANE - 6,
           fill=colour(f"fill-{_CORE}"), stroke=colour(str(_CORE)), stroke_width=1)
    ]  # fmt: skip
    for it in waits:
        x, wide = _GUTTER + it["begins"] * scale, (it["ends"] - it["begins"]) * scale
        drawn.append(
            el("rect", x=x, y=y + 1, width=max(wide, 0.5), height=_LANE - 6,
               fill=colour("ground"), stroke=colour("muted"), stroke_width=1)
        )  # fmt: skip
        drawn.append(el("path", d=hatch(x, y + 1, wide, _LANE - 6, step=4), stroke=colour("muted")))
    return drawn


def _axis(cycles: float, y: float, scale: float) -> list[Element]:
    least = 2 * text_width(f"{cycles:.0f}", 12, mono=True) / scale
    power = 10 ** max(math.floor(math.log10(least)), 0)
    step = next(it * power for it in (1, 2, 5, 10) if it * power >= least)
    end = _GUTTER + cycles * scale
    drawn = [
        el("path", d=f"M{number(_GUTTER)} {number(y + 3)}H{number(end)}", fill="none",
           stroke=colour("muted"))
    ]  # fmt: skip
    at = 0
    while at <= cycles:
        x = _GUTTER + at * scale
        drawn.append(
            el("path", d=f"M{number(x)} {number(y)}V{number(y + 6)}", stroke=colour("muted"))
        )
        drawn.append(
            words(x, y + 20, f"{at}", size=12, fill=colour("muted"), anchor="middle", mono=True)
        )
        at += step
    drawn.append(words(end, y + 35, "cycles, estimated", size=12, fill=colour("muted"),
                       anchor="end"))  # fmt: skip
    return drawn
