"""Waiting until a file is saved, by looking at it: no thread, no handle, nothing left behind."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

LOOK_EVERY = 0.3
"""Seconds between two looks."""

_SETTLED = 0.1

Stamp = tuple[int, int] | None


def stamps(files: Iterable[str]) -> dict[str, Stamp]:
    """Return when each file was last written and how large it is; None for one that is gone."""
    return {file: _stamp(Path(file)) for file in files}


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def changed(before: dict[str, Stamp]) -> list[str]:
    """Return the files that are there and are not as they were.

    One that is gone is being replaced: it counts when it is back.
    """
    now = stamps(before)
    return [file for file, stamp in now.items() if stamp is not None and stamp != before[file]]


def wait_for_change(before: dict[str, Stamp]) -> list[str]:
    """Wait until a file is not as it was, and is no longer being written; return which.

    Raises:
      KeyboardInterrupt: as always.
    """
    while not (found := changed(before)):
        time.sleep(LOOK_EVERY)
    seen = stamps(found)
    while True:
        time.sleep(_SETTLED)
        now = stamps(found)
        if now == seen:
            return found
        seen = now
