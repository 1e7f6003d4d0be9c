"""What the benchmarks measure is what they say: pages with all that they link, cells as scripts."""

import gzip
from pathlib import Path

import pytest
import yaml
from bench.builds import executed, grow, last_code_cell
from bench.checkout import Checkout
from bench.pages import page_weights, weigh
from bench.scripts import as_script, chapters

CHAPTER = """\
---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
covers: []
needs: []
rungs: [trace]
minutes: 1
---

(the-title)=
# Title

```{code-cell} python
a = 1
```

Text.

```{code-cell} python
assert a == 1
```
"""


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def small_book(tmp_path: Path) -> Checkout:
    toc = {
        "format": "jb-book",
        "root": "book/index",
        "parts": [{"caption": "Start", "chapters": [{"file": "book/start/one"}]}],
    }
    files = {"book/start/one.md": CHAPTER, "book/index.md": "# Hello\n"}
    put(tmp_path, files | {"_toc.yml": yaml.safe_dump(toc), "code/pallas_rungs/__init__.py": ""})
    return Checkout(tmp_path)


def test_page_weighs_what_it_links_and_what_its_styles_link(tmp_path: Path) -> None:
    site = put(
        tmp_path,
        {
            "book/start/page.html": '<link rel="stylesheet" href="../../s/a.css?v=1">'
            '<script src="../../s/b.js"></script><img src="data:image/png;base64,AA">'
            '<script src="https://elsewhere.example/x.js"></script><a href="other.html">o</a>',
            "book/start/other.html": "never fetched" * 99,
            "s/a.css": "@font-face { src: url('font.woff2#x') }",
            "s/font.woff2": "font",
            "s/b.js": "let x = 1;",
            "s/unused.js": "let y = 1;" * 99,
        },
    )
    total, parts = weigh(site / "book/start/page.html")
    assert {file.name for file in parts} == {"page.html", "a.css", "b.js", "font.woff2"}
    assert total == sum(len(gzip.compress(file.read_bytes(), 9)) for file in parts)
    assert set(page_weights(site)["pages"]) == {"book/start/page.html", "book/start/other.html"}


def test_site_that_is_not_built_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="make book"):
        page_weights(tmp_path)


def test_cells_become_one_script_in_order(small_book: Checkout) -> None:
    (chapter,) = chapters(small_book)
    script = as_script(chapter)
    assert script.index("a = 1") < script.index("assert a == 1")
    exec(compile(script, "script", "exec"), {})


def test_magic_is_refused(small_book: Checkout) -> None:
    page = small_book.root / "book/start/one.md"
    page.write_text(CHAPTER.replace("a = 1", "%time a = 1"))
    with pytest.raises(ValueError, match="no plain Python: %time"):
        as_script(chapters(small_book)[0])


def test_book_grows_by_chapters_that_differ(small_book: Checkout) -> None:
    assert grow(small_book, 3) == 3
    toc = yaml.safe_load((small_book.root / "_toc.yml").read_text())
    files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    assert len(set(files)) == 3
    texts = [(small_book.root / f"{file}.md").read_text() for file in files]
    assert len({text.count("(the-title)=") for text in texts}) == 2
    assert len(set(texts)) == 3
    assert len({as_script(chapter) for chapter in chapters(small_book)}) == 3


def test_executed_chapters_are_read_from_a_log() -> None:
    log = "chapters: executing book/a.md\nchapters: executed book/a.md in 3.1 s; 1 left\n"
    assert executed(log) == {"book/a.md": 3.1}
    assert executed("chapters: FAILED book/a.md in 3.1 s") == {}


def test_text_after_the_last_cell_is_left_alone() -> None:
    assert CHAPTER[last_code_cell(CHAPTER) :] == "```\n"
    with pytest.raises(ValueError, match="no code cell"):
        last_code_cell("# Title\n")
