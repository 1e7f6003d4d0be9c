"""Bugs on the ladder; while a book is built each is climbed once, and the pages share that."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import ModuleType
from typing import Literal

from pallas_rungs import bugs
from pallas_rungs.ladder.climbing import climb
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.sharing import make_if_free, shared_report
from pallas_rungs.museum.verdicts import RUNGS, changes, verdicts

Variant = Literal["broken", "fixed"]


@functools.cache
def climb_bug(bug: ModuleType, variant: Variant = "broken") -> Report:
    """Climb a bug of the museum, or its cure, on its first case, for v5e.

    The bug is tried on every rung, its cure on the rung that caught the bug and on the last one.
    That it passes all of them is what the museum's tests are for.

    Args:
      bug: a module of `pallas_rungs.bugs`.
      variant: ``broken`` or ``fixed``.
    """
    return shared_report(_key(bug, variant), functools.partial(_climbed, bug, variant))


def climb_bugs(museum: Iterable[ModuleType] = bugs.MUSEUM) -> dict[str, Report]:
    """Climb several bugs; return their reports by name, in order.

    What another page has in hand is left to the end, so that neither waits for the other.
    """
    museum = tuple(museum)
    for bug in museum:
        make_if_free(_key(bug, "broken"), functools.partial(_climbed, bug, "broken"))
    return {bugs.name(bug): climb_bug(bug) for bug in museum}


def _key(bug: ModuleType, variant: Variant) -> str:
    return f"{bugs.name(bug)}-{variant}"


def _climbed(bug: ModuleType, variant: Variant) -> Report:
    case = bug.cases()[0]
    caught = "interpret" if bug.FIRST_CAUGHT == "none" else bug.FIRST_CAUGHT
    return climb(
        getattr(bug, variant),
        *case.args,
        reference=bug.reference,
        rtol=case.rtol,
        atol=case.atol,
        rungs=RUNGS if variant == "broken" else (caught, "compile"),
        name=bugs.title(bug) + (", healed" if variant == "fixed" else ""),
    )


def as_recorded(bug: ModuleType) -> None:
    """Assert that a bug gets the verdicts that its module states, and that its cure passes.

    See `climb_bug` for the rungs that the cure is tried on.

    Raises:
      AssertionError: a verdict differs; the message has a line for each.
    """
    name = bugs.name(bug)
    differs = changes({name: bug.EXPECTED}, {name: verdicts(climb_bug(bug))})
    assert not differs, "\n".join(differs)
    healed = climb_bug(bug, "fixed")
    assert healed.passed, f"the cure does not pass:\n{healed}"
