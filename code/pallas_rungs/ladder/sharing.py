"""Reports that several pages of a book show are made once in a build, and shared.

Each page is executed in a process of its own. A build gives all of them one folder, empty when it
begins, by the variable `FOLDER`: the first page that wants a report makes it and leaves it there,
the others read it. So what a page shows was executed in that build. Without the variable, as in a
reader's notebook, every process makes its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pallas_rungs.ladder.report import Report

FOLDER: Final = "PALLAS_RUNGS_CLIMBS"
"""The variable that names the folder of a build's reports."""

type Make = Callable[[], Report]


def shared_report(name: str, make: Make) -> Report:
    """Return a report: the one that this build has under a name, or a new one.

    While another process makes it, wait for that.

    Args:
      name: a file name without an ending; equal names must mean equal climbs.
      make: climbs.

    Raises:
      OSError: the folder cannot be written.
    """
    from pallas_rungs.ladder.report import Report

    if not (folder := os.environ.get(FOLDER)):
        return make()
    kept = Path(folder) / f"{name}.json"
    _make_once(kept, make, wait=True)
    return Report.from_json(json.loads(kept.read_text("utf8")))


def make_if_free(name: str, make: Make) -> None:
    """Make a report that this build lacks, unless another process is at it.

    Args:
      name: as for `shared_report`.
      make: climbs.

    Raises:
      OSError: the folder cannot be written.
    """
    if folder := os.environ.get(FOLDER):
        _make_once(Path(folder) / f"{name}.json", make, wait=False)


def _make_once(kept: Path, make: Make, *, wait: bool) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with _alone(kept.with_suffix(".lock"), wait=wait) as alone:
        if alone and not kept.exists():
            draft = kept.with_suffix(".draft")
            draft.write_text(json.dumps(make().to_json()), "utf8")
            draft.replace(kept)


@contextmanager
def _alone(lock: Path, *, wait: bool) -> Iterator[bool]:
    """Keep other processes out, if need be after a wait; False when another one is in.

    The system takes the lock back from a process that dies.
    """
    import fcntl  # not on Windows, where no book is built

    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
