"""Executes chapters and lists the cells that take longest: where a page's build time goes.

Usage: time_cells.py CHAPTER... [--least SECONDS]

A chapter is a path such as book/start/edges.md. Nothing is stored and no page is written; the
verdict cache is left aside, as in the gate. Times are this machine's, for comparing cells only.
Outputs that show a figure without its provenance are named, as the build does.
"""

import argparse
import asyncio
import sys
from datetime import datetime
from pathlib import Path

from pallas_rungs.book.execute import kernel_environment
from pallas_rungs.book.figures_check import output_faults
from pallas_rungs.book.notebooks import read_chapter
from pallas_rungs.book.session import Session

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "code"
CELL_SECONDS = 300


def main() -> int:
    """Prints each chapter's cells; 1 where a chapter cannot be read or a cell fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("chapters", nargs="+", type=Path, metavar="CHAPTER")
    parser.add_argument("--least", type=float, default=0.5, help="seconds; cheaper cells are left")
    options = parser.parse_args()
    return max(_time(path, options.least) for path in options.chapters)


def _time(path: Path, least: float) -> int:
    shown = str(path)
    chapter = read_chapter(path.stem, path.resolve(), shown, CODE / "pallas_rungs", CODE)
    if chapter is None or chapter.faults:
        print(f"{shown}: not a chapter, or one with faults; make book tells", file=sys.stderr)
        return 1
    session = Session(
        chapter.notebook, kernel_environment(CODE, fresh=True), CELL_SECONDS, record_timing=True
    )
    failure = asyncio.run(session.run())
    timed = [
        (_seconds(cell.metadata.get("execution", {})), cell.source)
        for cell in chapter.notebook.cells
        if cell.cell_type == "code"
    ]
    total = sum(seconds for seconds, _ in timed)
    print(f"{shown}: {session.seconds:.1f} s, {total:.1f} s of it in {len(timed)} cells")
    for seconds, source in timed:
        if seconds >= least:
            told = [line for line in source.split("\n") if line and "import" not in line]
            first = next(iter(told), source)
            print(f"  {seconds:6.2f} s  {first[:90]}")
    if failure is not None:
        print(f"{shown}: {failure}", file=sys.stderr)
    bare = output_faults(chapter, chapter.notebook)
    for fault in bare:
        print(fault, file=sys.stderr)
    return int(failure is not None or bool(bare))


def _seconds(execution: dict[str, str]) -> float:
    try:
        began, ended = (
            datetime.fromisoformat(execution[name])
            for name in ("iopub.execute_input", "iopub.status.idle")
        )
    except KeyError:
        return 0.0
    return (ended - began).total_seconds()


if __name__ == "__main__":
    sys.exit(main())
