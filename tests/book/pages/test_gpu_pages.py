"""Pages with records of the CUDA compiler's words: where it is, it proves what they say."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from pallas_rungs.book.execute import kernel_environment
from pallas_rungs.book.notebooks import read_chapter
from pallas_rungs.book.session import Session
from pallas_rungs.claims import MIME
from pallas_rungs.compilers.once import FOLDER
from pallas_rungs.extras import why_missing

PAGES = (
    ("lowering/ptx-and-sass", 10, 0),
    ("performance/gates-and-records", 3, 2),
    ("production/attention-for-sm90", 5, 0),
)
"""Pages, how many claims of each are proved by compiling at least, and how many rest on a record of
libtpu's words that no build makes anew."""


@pytest.mark.cuda
@pytest.mark.parametrize(("page", "claims", "recorded"), PAGES)
def test_the_compiler_bears_the_records_out_and_proves_the_claims(
    root: Path, tmp_path: Path, page: str, claims: int, recorded: int
) -> None:
    code = root / "code"
    path = root / "book" / f"{page}.md"
    chapter = read_chapter(page, path, str(path), code / "pallas_rungs", code)
    assert chapter is not None
    assert not chapter.faults
    if missing := next(filter(None, map(why_missing, chapter.extras)), ""):
        pytest.skip(missing)
    environment = {**kernel_environment(code, fresh=True), FOLDER: str(tmp_path)}
    session = Session(chapter.notebook, environment, 300)
    assert asyncio.run(session.run()) is None
    told = [
        output["data"][MIME]
        for cell in chapter.notebook.cells
        for output in cell.get("outputs", ())
        if MIME in output.get("data", {})
    ]
    kinds = Counter(record["kind"] for record in told if record["rung"] == "compile")
    assert kinds["claim"] > claims
    assert kinds - Counter(claim=kinds["claim"]) == Counter(unproved=recorded)
