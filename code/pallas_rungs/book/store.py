"""Executed chapters on disk: one JSON file for each content key, under ``_build/executed``."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KEPT = 4
"""How many executions of one chapter stay in the store."""


@dataclass(frozen=True)
class Execution:
    """One successful execution of a chapter.

    Attributes:
        key: The chapter's content key.
        outputs: The outputs of each code cell, in order, in the notebook format.
        seconds: How long it took.
        date: When it ended: UTC, ISO 8601, to the second.
        versions: Package versions it ran with.
    """

    key: str
    outputs: list[list[dict[str, Any]]]
    seconds: float
    date: str
    versions: dict[str, str]


class Store:
    """The executions kept in one folder.

    Args:
        folder: Where they lie; made when something is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, docname: str, key: str) -> Path:
        return self.folder / docname / f"{key[:24]}.json"

    def get(self, docname: str, key: str) -> Execution | None:
        """Return the execution of a chapter under a key, or ``None``."""
        try:
            record = json.loads(self._file(docname, key).read_text("utf8"))
            execution = Execution(**record)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            return None  # half-written, or of another version: execute anew
        return execution if execution.key == key else None

    def put(self, docname: str, execution: Execution) -> None:
        """Keep an execution, and drop the chapter's oldest ones."""
        file = self._file(docname, execution.key)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}.draft")
        draft.write_text(json.dumps(asdict(execution)), "utf8")
        draft.replace(file)
        kept = sorted(file.parent.glob("*.json"), key=lambda f: f.stat().st_mtime, reverse=True)
        for old in kept[KEPT:]:
            old.unlink(missing_ok=True)

    def last_seconds(self, docname: str) -> float:
        """Return how long the chapter's newest execution took, or infinity when it had none."""
        files = list((self.folder / docname).glob("*.json"))
        if not files:
            return math.inf
        newest = max(files, key=lambda f: f.stat().st_mtime)
        try:
            return float(json.loads(newest.read_text("utf8"))["seconds"])
        except (ValueError, KeyError, TypeError):
            return math.inf
