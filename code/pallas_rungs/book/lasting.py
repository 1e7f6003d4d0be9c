"""Outputs that last: names that only the machine of this build knows are replaced."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipykernel.compiler import get_file_name

from pallas_rungs.book.notebooks import Chapter

_CELL_FILE = re.compile(r"[^\s\"'<>()]*ipykernel_\d+[/\\](\d+\.py)")
_TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"[/\\]tmp\w+[/\\]")


@dataclass(frozen=True)
class LastingNames:
    """What the outputs of one chapter say in place of names that differ from build to build.

    Attributes:
        checkout: The folder that the book is built in. Files in it are named from there on.
        cells: File name that the kernel makes up for a cell, to what it is called: ``In[3]``.
    """

    checkout: Path
    cells: dict[str, str]

    @classmethod
    def of(cls, chapter: Chapter, checkout: Path) -> LastingNames:
        """Return the names for a chapter."""
        cells: dict[str, str] = {}
        for cell in chapter.cells:
            file: str = get_file_name(chapter.source(cell))  # type: ignore[no-untyped-call]
            cells[Path(file).name] = f"In[{cell.number}]"
        return cls(checkout, cells)

    def applied(self, value: Any) -> Any:
        """Return an output, or a part of one, with lasting names.

        Args:
            value: An output in the notebook format: dictionaries, lists and strings.
        """
        if isinstance(value, str):
            text = _CELL_FILE.sub(lambda match: self.cells.get(match[1], "a cell"), value)
            text = _TEMPORARY.sub("", text)
            return re.sub(re.escape(str(self.checkout)) + r"[/\\]", "", text)
        if isinstance(value, dict):
            return {key: self.applied(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.applied(part) for part in value]
        return value
