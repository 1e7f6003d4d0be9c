"""The chapters' cells as plain Python scripts: what the same work takes without a book."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.checkout import Checkout
from pallas_rungs.book.notebooks import Chapter, read_chapter

DISPLAY = """\
# A page would show a figure or a table; a script makes it and shows nothing.
def display(*shown, **_):
    for value in shown:
        for form in ("_repr_html_", "_repr_svg_"):
            if hasattr(value, form):
                getattr(value, form)()
"""


def chapters(checkout: Checkout) -> list[Chapter]:
    """Reads the chapters with code cells, drawn cells expanded."""
    root = checkout.root
    found = []
    for path in sorted((root / "book").rglob("*.md")):
        shown = str(path.relative_to(root))
        docname = shown.removesuffix(".md")
        code = root / "code"
        chapter = read_chapter(docname, path, shown, code / "pallas_rungs", code)
        if chapter is not None and chapter.cells:
            found.append(chapter)
    return found


def as_script(chapter: Chapter) -> str:
    """Joins a chapter's code cells; lines that only IPython understands are refused.

    Raises:
        ValueError: A cell holds a magic or a shell line.
    """
    cells = [c.source for c in chapter.notebook.cells if c.cell_type == "code"]
    for source in cells:
        for line in source.splitlines():
            if line.startswith(("%", "!")):
                raise ValueError(f"{chapter.shown}: no plain Python: {line}")
    return "\n\n".join([DISPLAY, *cells]) + "\n"


def run_as_scripts(checkout: Checkout, folder: Path, at_once: int = 2) -> dict[str, float]:
    """Runs each chapter as a script, several at once.

    Args:
        checkout: The copy that the chapters are in.
        folder: Where to write the scripts.
        at_once: How many processes.

    Returns:
        Wall seconds of each chapter, and of all together under "all".

    Raises:
        RuntimeError: A script failed.
    """
    environment = checkout.environment(fresh=True)
    texts = {chapter.shown: as_script(chapter) for chapter in chapters(checkout)}

    def run(named: tuple[str, str]) -> tuple[str, float]:
        shown, text = named
        script = folder / (shown.replace("/", "-") + ".py")
        script.write_text(text, "utf-8")
        start = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, str(script)],
            cwd=checkout.root / Path(shown).parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != 0:
            raise RuntimeError(f"{shown} failed as a script:\n{ended.stderr[-2000:]}")
        return shown, time.perf_counter() - start

    start = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        seconds = dict(pool.map(run, texts.items()))
    return seconds | {"all": time.perf_counter() - start}
