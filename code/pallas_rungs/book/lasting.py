"""Outputs that last: the files that a kernel makes up for its cells are named as cells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ipykernel.compiler import get_file_name

from pallas_rungs.book.notebooks import Chapter

_CELL_FILE = re.compile(r"[^\s\"'<>()]*ipykernel_\d+[/\\](\d+\.py)")


def cell_file_names(chapter: Chapter) -> dict[str, str]:
    """Return what each file that a kernel makes up for a cell is to be called: ``In[3]``."""
    names: dict[str, str] = {}
    for cell in chapter.cells:
        file: str = get_file_name(chapter.source(cell))  # type: ignore[no-untyped-call]
        names[Path(file).name] = f"In[{cell.number}]"
    return names


def without_cell_files(value: Any, names: dict[str, str]) -> Any:
    """Return an output, or a part of one, with the kernel's made-up files named as cells.

    Args:
        value: An output in the notebook format: dictionaries, lists and strings.
        names: File name to what it is to be called, see `cell_file_names`.
    """
    if isinstance(value, str):
        return _CELL_FILE.sub(lambda match: names.get(match[1], "a cell"), value)
    if isinstance(value, dict):
        return {key: without_cell_files(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [without_cell_files(part, names) for part in value]
    return value
