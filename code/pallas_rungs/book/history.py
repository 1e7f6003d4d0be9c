"""Which commit a build was made from: asked of git, and done without where there is none."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class History:
    """Where the built text comes from.

    Attributes:
        commit: the full hash; empty when the folder is no checkout (a downloaded archive).
        day: the commit's day, or that of ``SOURCE_DATE_EPOCH``; None when neither is known.
        changed: whether files that git tracks differ from the commit.
    """

    commit: str = ""
    day: date | None = None
    changed: bool = False

    @property
    def short(self) -> str:
        """The first characters of the commit, as people write it."""
        return self.commit[:9]


@cache
def history(root: Path) -> History:
    """Ask git about the checkout that `root` is the top of.

    The day never comes from the clock, so that the same commit makes the same pages.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    day = datetime.fromtimestamp(int(epoch), UTC).date() if epoch.isdigit() else None
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root.resolve():
        return History(day=day)
    found = _git(root, "log", "-1", "--format=%H %cs").split()
    if len(found) != 2:
        return History(day=day)
    changed = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    return History(found[0], day or date.fromisoformat(found[1]), changed)


def in_words(day: date) -> str:
    """Write a day as ``28 November 2026``."""
    return f"{day.day} {day:%B %Y}"


def _git(root: Path, *arguments: str) -> str:
    try:
        run = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
