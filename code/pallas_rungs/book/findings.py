"""From what a kernel reported to a fault that names chapter, line, cell, claim and values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from pallas_rungs import claims
from pallas_rungs.book.faults import Fault
from pallas_rungs.book.notebooks import EXPECTS_STDERR, Chapter, CodeCell
from pallas_rungs.book.session import Failure
from pallas_rungs.book.sources import Line


def _cell_at(chapter: Chapter, index: int) -> CodeCell:
    return next(cell for cell in chapter.cells if cell.index == index)


def _line_of(chapter: Chapter, frame: Mapping[str, Any]) -> Line | None:
    """Find where the line of a frame stands, when the frame is in one of the chapter's cells."""
    for cell in chapter.cells:
        number = int(frame["line"])
        if cell.number == frame["cell"] and 0 < number <= len(cell.lines):
            return cell.lines[number - 1]
    return None


def failure_fault(chapter: Chapter, failure: Failure, root: Path) -> Fault:
    """Describe why a chapter stopped.

    Args:
        chapter: The chapter.
        failure: What its kernel reported.
        root: The book's folder; paths are shown relative to it.
    """
    cell = _cell_at(chapter, failure.index)
    number = cell.fence
    details: list[str] = [
        note.replace("while proving the claim", "claim") for note in dict.fromkeys(failure.notes)
    ]
    for frame in failure.frames:
        line = _line_of(chapter, frame)
        if line is not None and not line.symbol:
            if frame["cell"] == cell.number:
                number = line.number
            details.append(f"{chapter.shown}:{line.number}: {frame['source']}")
        elif line is not None:
            file = os.path.relpath(line.file, root)
            details.append(f"drawn symbol {line.symbol}, {file}:{line.number}: {frame['source']}")
        elif frame["file"] and Path(frame["file"]).is_relative_to(root):
            file = os.path.relpath(frame["file"], root)
            details.append(f"{file}:{frame['line']}, in {frame['function']}: {frame['source']}")
    if failure.frames and not _is_ours(chapter, failure.frames[-1], root):
        frame = failure.frames[-1]
        details.append(f"{frame['file']}:{frame['line']}, in {frame['function']}")
    details += [f"value: {value}" for value in failure.values]
    if not failure.frames:
        source = chapter.source(cell).splitlines()
        details += [f"| {line}" for line in source[:8]]
        details += ["| …"] if len(source) > 8 else []
    label = f"code cell {cell.number}"
    first, *rest = failure.cause.splitlines() or [""]
    return Fault(f"{chapter.shown}:{number}", first, label, (*rest[:20], *details))


def _is_ours(chapter: Chapter, frame: Mapping[str, Any], root: Path) -> bool:
    file = Path(frame["file"])
    if file == Path(claims.__file__):
        return True  # `refuses` says itself what is wrong
    return _line_of(chapter, frame) is not None or file.is_relative_to(root)


def stderr_faults(chapter: Chapter, notebook: NotebookNode) -> list[Fault]:
    """Return a fault for each cell that wrote to standard error without saying that it would."""
    faults = []
    for cell in chapter.cells:
        node = notebook.cells[cell.index]
        if EXPECTS_STDERR in node.metadata.get("tags", []):
            continue
        written = [
            line.rstrip()
            for output in node.get("outputs", [])
            if output.output_type == "stream" and output.name == "stderr"
            for line in str(output.text).splitlines()
            if line.strip()
        ]
        if written:
            cause = f"the cell wrote to standard error; mend it, or tag it {EXPECTS_STDERR!r}"
            place = f"{chapter.shown}:{cell.fence}"
            faults.append(Fault(place, cause, f"code cell {cell.number}", tuple(written[:8])))
    return faults
