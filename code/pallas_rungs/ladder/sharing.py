"""Reports that several pages of a book show are made once in a build, and shared.

The first page that wants a report makes it and leaves it in the build's folder, the others read it.
Without such a folder, as in a reader's notebook, every process makes its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_rungs.compilers.once import FOLDER, make_once

if TYPE_CHECKING:
    from pallas_rungs.ladder.report import Report

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
    make_once(kept, _text_of(make), wait=True)
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
        make_once(Path(folder) / f"{name}.json", _text_of(make), wait=False)


def _text_of(make: Make) -> Callable[[], str]:
    return lambda: json.dumps(make().to_json())
