"""The excerpt directive in a real Sphinx build: what it shows, when it is redone, how it fails."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pallas_rungs.book.excerpts import parse_notes
from pallas_rungs.walk import ExcerptError, Note

PAGE = """\
# A page

```{excerpt} upstream_for_sphinx.core:Block.start
:caption: The `start`
- algorithm "self.index * self.size": index times
  size, again.
- schedule '@def:start': when it is asked.
```
"""

SOURCE = """\
# SPDX-License-Identifier: MIT
class Block:
    def start(self):
        return self.index * self.size
"""


class Site:
    """A Sphinx project whose page draws from a package that the test installs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages = folder / "packages"
        (folder / "src").mkdir()
        (folder / "src" / "conf.py").write_text(
            "extensions = ['myst_parser', 'pallas_rungs.book.excerpts']\nhtml_theme = 'basic'\n"
        )
        self.page(PAGE)
        (folder / "src" / "other.md").write_text("---\norphan: true\n---\n# Other\n")
        self.install(SOURCE, "1.0")

    def page(self, text: str) -> None:
        (self.folder / "src" / "index.md").write_text(text)

    def install(self, source: str, version: str) -> None:
        info = self.packages / "upstream_for_sphinx-0.dist-info"
        for made in (self.packages / "upstream_for_sphinx", info):
            made.mkdir(parents=True, exist_ok=True)
        (self.packages / "upstream_for_sphinx" / "__init__.py").write_text("")
        (self.packages / "upstream_for_sphinx" / "core.py").write_text(source)
        (info / "top_level.txt").write_text("upstream_for_sphinx\n")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: upstream_for_sphinx\nVersion: {version}\n"
        )

    def build(self) -> tuple[int, str]:
        ended = subprocess.run(
            [sys.executable, "-m", "sphinx", "-N", "-b", "html", "src", "out"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(self.packages), "PATH": "", "HOME": str(self.folder)},
        )
        return ended.returncode, ended.stdout + ended.stderr

    @property
    def html(self) -> str:
        return (self.folder / "out" / "index.html").read_text()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    importlib.invalidate_caches()
    return Site(tmp_path)


def test_it_shows_code_notes_and_origin(site):
    code, said = site.build()
    assert code == 0, said
    assert "The <code>start</code>" in site.html
    assert "index times size, again." in site.html
    assert "From the installed upstream_for_sphinx 1.0" in site.html
    assert 'href="#excerpt-start-n1"' in site.html
    assert 'id="excerpt-start-n1"' in site.html
    assert re.search(r'<link rel="stylesheet"[^>]*pr-excerpt\.css', site.html)
    assert (site.folder / "out" / "_static" / "pr-excerpt.css").is_file()
    assert "<script" not in site.html[site.html.index("pr-excerpt-code") :].split("</figure>")[0]


def test_two_excerpts_of_one_symbol_have_ids_of_their_own(site):
    site.page(PAGE + PAGE.partition("\n")[2])
    assert site.build()[0] == 0
    ids = re.findall(r'id="([^"]+)"', site.html)
    assert len(ids) == len(set(ids))


def test_a_new_version_redraws_the_page_and_only_that(site):
    assert site.build()[0] == 0
    code, said = site.build()
    assert code == 0
    assert "no targets are out of date" in said
    site.install(SOURCE, "1.1")
    code, said = site.build()
    assert code == 0, said
    assert "0 added, 1 changed, 0 removed" in said
    assert "From the installed upstream_for_sphinx 1.1" in site.html


def test_upstream_changed_under_a_note_fails_even_a_lenient_build(site):
    assert site.build()[0] == 0
    site.install(SOURCE.replace("self.index * self.size", "offset"), "2.0")
    code, said = site.build()
    assert code != 0
    assert "index.md:3: excerpt: upstream_for_sphinx 2.0" in said
    assert "note anchor 'self.index * self.size' is gone" in said


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("upstream_for_sphinx.core:Gone", "symbol 'Gone' is gone"),
        ("upstream_for_sphinx.core", "is not of the form module:symbol"),
        ("not_installed.core:f", "'not_installed' is not installed"),
    ],
)
def test_a_wrong_argument_fails_the_build(site, argument, said):
    site.page(f"# A page\n\n```{{excerpt}} {argument}\n```\n")
    code, output = site.build()
    assert code != 0
    assert said in output


def test_start_and_end_anchors_may_be_quoted(site):
    site.page(
        "# A page\n\n```{excerpt} upstream_for_sphinx.core:Block\n"
        ':start: "def start"\n:end: "@return"\n```\n'
    )
    code, said = site.build()
    assert code == 0, said
    assert "lines 3–4" in site.html


def test_notes_are_read_with_any_quotes_and_continuations():
    assert parse_notes(['- algorithm `a "b"`: one', "  two", "", "- schedule 'c': three"]) == [
        Note('a "b"', "one two", "algorithm"),
        Note("c", "three", "schedule"),
    ]


@pytest.mark.parametrize("line", ["words", "- algorithm a: one", '- algorithm "a" one', "  two"])
def test_a_line_that_is_no_note_is_shown(line):
    with pytest.raises(ExcerptError, match="as a note"):
        parse_notes([line])
