"""Bugs on the ladder. While a book is built each of them is climbed once, and the pages share it.

A page is executed in a process of its own. A build gives all of them one folder, empty when it
begins, by the variable `SHARED`: the first page that wants a climb makes it and leaves its report
there, the others wait for it and read it. So what a page shows was executed in that build. Without
the variable, as in a reader's notebook, every process climbs for itself.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

from pallas_rungs import bugs
from pallas_rungs.ladder.climbing import climb
from pallas_rungs.ladder.report import Report
from pallas_rungs.museum.verdicts import RUNGS, changes, verdicts

SHARED: Final = "PALLAS_RUNGS_CLIMBS"
"""The variable that names the folder of a build's climbs."""

Variant = Literal["broken", "fixed"]


@functools.cache
def climb_bug(bug: ModuleType, variant: Variant = "broken") -> Report:
    """Climb a bug of the museum, or its cure, on its first case, on every rung, for v5e.

    Args:
      bug: a module of `pallas_rungs.bugs`.
      variant: ``broken`` or ``fixed``.

    Raises:
      OSError: the folder that `SHARED` names cannot be written.
    """
    if folder := os.environ.get(SHARED):
        return _shared(Path(folder), bug, variant)
    return _climbed(bug, variant)


def _climbed(bug: ModuleType, variant: Variant) -> Report:
    case = bug.cases()[0]
    name = bugs.title(bug) + (", healed" if variant == "fixed" else "")
    return climb(
        getattr(bug, variant),
        *case.args,
        reference=bug.reference,
        rtol=case.rtol,
        atol=case.atol,
        name=name,
    )


def _shared(folder: Path, bug: ModuleType, variant: Variant) -> Report:
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{bugs.name(bug)}-{variant}.json"
    with _one_at_a_time(kept.with_suffix(".lock")):
        if not kept.exists():
            draft = kept.with_suffix(".draft")
            draft.write_text(json.dumps(_climbed(bug, variant).to_json()), "utf8")
            draft.replace(kept)
    return Report.from_json(json.loads(kept.read_text("utf8")))


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    """Keep other processes out; the system gives the lock back when its holder dies."""
    import fcntl  # not on Windows, where no book is built

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def as_recorded(bug: ModuleType) -> None:
    """Assert that a bug gets the verdicts that its module states, and its cure passes every rung.

    Raises:
      AssertionError: a verdict differs; the message has a line for each.
    """
    name = bugs.name(bug)
    differs = changes({name: bug.EXPECTED}, {name: verdicts(climb_bug(bug))})
    assert not differs, "\n".join(differs)
    healed = verdicts(climb_bug(bug, "fixed"))
    differs = changes({name: dict.fromkeys(RUNGS, "passed")}, {name: healed})
    assert not differs, "healed, it should pass:\n" + "\n".join(differs)
