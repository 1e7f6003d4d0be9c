"""What several processes of a build want is made once, and kept in a folder that they share.

Each page is executed in a process of its own. A build gives all of them one folder, empty when it
begins, by the variable `FOLDER`. So what a page shows was executed in that build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FOLDER: Final = "PALLAS_RUNGS_CLIMBS"
"""The variable that names the folder of a build."""


def make_once(kept: Path, make: Callable[[], str], *, wait: bool) -> None:
    """Make a file that is not there yet, and keep other processes from making it too.

    Args:
      kept: the file; its folder is made.
      make: gives the file's text.
      wait: wait for another process that is making it; else leave it to that process.

    Raises:
      OSError: the folder cannot be written.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    with _alone(kept.with_suffix(".lock"), wait=wait) as alone:
        if alone and not kept.exists():
            draft = kept.with_suffix(".draft")
            draft.write_text(make(), "utf8")
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
