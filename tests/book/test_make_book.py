"""The book itself, as `make book` builds it: every chapter executed, and nothing twice."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CHAPTER_LINE = re.compile(r"chapters: (?:executing|executed|FAILED|\d+ to execute)")


def build(root: Path, capsys: pytest.CaptureFixture[str], **environment: str) -> str:
    """Builds the site into _build/html, showing which chapter is executed; returns the log.

    Fails with the end of the log, which names chapter, cell and cause.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PALLAS_RUNGS_")}
    started = subprocess.Popen(
        [sys.executable, str(root / "tools/build_book.py")],
        cwd=root,
        env=kept | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    log = []
    assert started.stdout is not None
    with capsys.disabled():
        print()
        for line in started.stdout:
            log.append(line)
            if CHAPTER_LINE.search(line):
                print(f"  {line.rstrip()}", flush=True)
    if started.wait() != 0:
        pytest.fail("the book did not build:\n" + "".join(log[-150:]), pytrace=False)
    return "".join(log)


def chapters_with_cells(root: Path) -> set[str]:
    """Lists the pages of the table of contents that have code cells, as `book/start/x.md`."""
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    files = [toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])]
    paths = [f"{file}.md" for file in files]
    return {path for path in paths if "```{code-cell}" in (root / path).read_text()}


@pytest.fixture(scope="module")
def order() -> list[str]:
    """What was done so far, since the second test is about what the first left."""
    return []


def test_every_chapter_is_executed(
    root: Path, capsys: pytest.CaptureFixture[str], order: list[str]
) -> None:
    log = build(root, capsys, PALLAS_RUNGS_FRESH="1", PALLAS_RUNGS_NO_CACHE="1")
    executed = set(re.findall(r"executed (\S+\.md) in [\d.]+ s", log))
    executed |= set(re.findall(r"not executed: (\S+\.md) needs", log))
    assert executed == chapters_with_cells(root)
    assert (root / "_build/html/index.html").is_file()
    for chapter in chapters_with_cells(root):
        page = root / "_build/html" / Path(chapter).with_suffix(".html")
        assert "pr-badge" in page.read_text(), f"{chapter}: no badge of what it was verified on"
    order.append("built")


def test_nothing_is_executed_when_nothing_changed(
    root: Path, capsys: pytest.CaptureFixture[str], order: list[str]
) -> None:
    if not order:
        pytest.fail("the book was not built by the test before this one", pytrace=False)
    again = build(root, capsys, PALLAS_RUNGS_NO_CACHE="1")
    assert re.findall(r"executed (\S+\.md)", again) == []
