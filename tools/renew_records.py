"""Has the compilers say anew what the book keeps records of, and writes what changed.

Usage: renew_records.py [CHAPTER...]

Executes the chapters that are named, or all that show a compiler's words, with libtpu and, where
`make cuda` has put it, the CUDA compiler. A record that still holds is left as it is, with its
date. The tile sweep's alone takes ten minutes or so.
"""

import asyncio
import os
import sys
from pathlib import Path

import cuda_extra

from pallas_rungs.book.execute import kernel_environment
from pallas_rungs.book.notebooks import read_chapter
from pallas_rungs.book.session import Session
from pallas_rungs.compilers.records import RENEW, live_or_recorded, recorded

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "code"
CELL_SECONDS = 3600  # a page that shows a long record makes all of it in one cell


def main() -> int:
    """Executes the chapters one after the other; 1 where one cannot be read or a cell fails."""
    if cuda_extra.here():
        os.environ["PYTHONPATH"] = str(cuda_extra.FOLDER)
    named = [Path(page).resolve() for page in sys.argv[1:]]
    asking = tuple(f" {asked.__name__}(" for asked in (live_or_recorded, recorded))
    pages = [
        page
        for page in sorted(ROOT.glob("book/*/*.md"))
        if any(asked in page.read_text("utf-8") for asked in asking)
        and (not named or page in named)
    ]
    for page in set(named) - set(pages):
        print(f"{page}: no chapter that keeps a record", file=sys.stderr)
    return max(map(_renew, pages), default=0) or int(bool(set(named) - set(pages)))


def _renew(page: Path) -> int:
    shown = page.relative_to(ROOT).as_posix()
    print(shown, flush=True)
    chapter = read_chapter(page.stem, page, shown, CODE / "pallas_rungs", CODE)
    if chapter is None or chapter.faults:
        print(f"{shown}: not a chapter, or one with faults; make book tells", file=sys.stderr)
        return 1
    environment = {**kernel_environment(CODE, fresh=True), RENEW: "1"}
    failure = asyncio.run(Session(chapter.notebook, environment, CELL_SECONDS).run())
    if failure is not None:
        print(f"{shown}: {failure}", file=sys.stderr)
    return int(failure is not None)


if __name__ == "__main__":
    sys.exit(main())
