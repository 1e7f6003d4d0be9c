"""What the command `estimate` prints: text or JSON, and its exit code."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence

from pallas_rungs.ladder.estimating import FileEstimate
from pallas_rungs.performance.accuracy import ranges_meet

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
    first, second = ((it.estimate["low"], it.estimate["high"]) for it in (one, other))
    meet = ranges_meet(first, second)
    if meet is None:
        return "two estimates whose errors are not known"
    if any(it.estimate.get("unresolved") for it in (one, other)):
        return "two estimates, partly guessed: their ranges do not say which is faster"
    if meet:
        return "two estimates whose ranges overlap: they do not say which is faster"
    return "two estimates whose ranges are apart"


def as_json(
    found: Sequence[FileEstimate], against: Sequence[FileEstimate], code: int | None = None
) -> str:
    """Return everything as JSON, with the exit code `code`, or that of the estimates for None."""
    data = [one.to_json() for one in found]
    for one, other, entry in zip(found, against, data, strict=False):
        entry["against"] = other.to_json()
        entry["ratio"] = ratio(one, other)
    code = exit_code([*found, *against]) if code is None else code
    return json.dumps({"estimates": data, "exit_code": code}, indent=2)


def show(found: Sequence[FileEstimate], against: Sequence[FileEstimate]) -> None:
    """Print every estimate, and what goes with it; errors go to the error stream."""
    for place, (one, other) in enumerate(itertools.zip_longest(found, against)):
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
