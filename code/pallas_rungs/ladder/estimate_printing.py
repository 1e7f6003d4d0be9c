"""What the command `estimate` prints: text or JSON, and its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from pallas_rungs.ladder.estimating import FileEstimate

FAULT, UNAVAILABLE = 1, 3


def exit_code(found: Sequence[FileEstimate]) -> int:
    """Return 0 where everything was estimated, 3 where only a compiler was missing, else 1."""
    kinds = {one.kind for one in found if one.error}
    if not kinds:
        return 0
    return UNAVAILABLE if kinds == {"unavailable"} else FAULT


def ratio(one: FileEstimate, other: FileEstimate) -> float | None:
    """Return one estimate as a part of the other; None where either is missing."""
    if one.error or other.error or not other.estimate["seconds"]:
        return None
    return float(one.estimate["seconds"] / other.estimate["seconds"])


def apart(one: FileEstimate, other: FileEstimate) -> str:
    """Say of two estimates whether their ranges tell which is faster."""
    lows = [it.estimate["low"] for it in (one, other)]
    highs = [it.estimate["high"] for it in (one, other)]
    if None in (*lows, *highs):
        return "two estimates whose errors are not known"
    if max(lows) <= min(highs):
        return "two estimates whose ranges overlap: they do not say which is faster"
    return "two estimates whose ranges are apart"


def as_json(found: Sequence[FileEstimate], against: Sequence[FileEstimate]) -> str:
    """Return everything as JSON."""
    data = [one.to_json() for one in found]
    for one, other, entry in zip(found, against, data, strict=False):
        entry["against"] = other.to_json()
        entry["ratio"] = ratio(one, other)
    return json.dumps({"estimates": data, "exit_code": exit_code([*found, *against])}, indent=2)


def show(found: Sequence[FileEstimate], against: Sequence[FileEstimate]) -> None:
    """Print every estimate, and what goes with it; errors go to the error stream."""
    others: Sequence[FileEstimate | None] = against or [None] * len(found)
    for place, (one, other) in enumerate(zip(found, others, strict=True)):
        if place:
            print()
        _show(one)
        if other is not None:
            _show(other)
            part = ratio(one, other)
            if part is not None:
                print(
                    f"{one.name} / {other.name} on {one.chip}: {part:.3f} × ({apart(one, other)})"
                )
                _show_left_out(one, other)


def _show_left_out(one: FileEstimate, other: FileEstimate) -> None:
    """Say on which side of a ratio a cross-program prefetch keeps bytes and time out of it."""
    from pallas_rungs.performance.report import left_out

    for place, side in (("the first", one), ("the second", other)):
        if said := left_out(side.estimate.get("prefetched_bytes")):
            print(f"  {side.name if one.name != other.name else place}: {said}")


def _show(one: FileEstimate) -> None:
    if one.error:
        print(f"{one.name} on {one.chip}: no estimate: {one.error}", file=sys.stderr)
    else:
        print(one.text)
