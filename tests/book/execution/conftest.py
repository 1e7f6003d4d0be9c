"""Small books with a package of their own, built by the real program with the real settings."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from book.front_matter import front_matter

ROOT = Path(__file__).resolve().parents[3]

CORE = '''\
"""Arithmetic that chapters draw and import."""

import math


def double(x):
    """Return twice x."""
    return math.prod([2, x])


class Counter:
    """Counts."""

    # how many so far
    def count(self, items):
        """Return how many there are."""
        return len(items)
'''

OTHER = '''\
"""Another module."""

from math import fsum

LIMIT = 3


def total(items):
    """Return the sum of a few items."""
    return fsum(items[:LIMIT])


def triple(x):
    """Return three times x."""
    assert x < LIMIT, f"{x} is past the limit"
    return 3 * x
'''


def chapter(body: str, *, rungs: str = "interpret", more: str = "") -> str:
    """Returns a chapter's text: front matter, a heading, and the body."""
    return front_matter(rungs=rungs, more=more) + "# A chapter\n\n" + body


def cell(source: str, options: str = "") -> str:
    return f"```{{code-cell}} python\n{options}{source}\n```\n\n"


@dataclass
class Build:
    """What one build left."""

    code: int
    output: str

    @property
    def report(self) -> str:
        """The faults: everything from the report's first line to the end of the output."""
        found = self.output.rfind("\nThe book ")
        assert found >= 0, f"no report at the end of:\n{self.output}"
        return self.output[found:]

    @property
    def executed(self) -> list[str]:
        return sorted(re.findall(r"chapters: executing (\S+)", self.output))

    def fault(self, place: str) -> str:
        """Returns the fault that is reported for a chapter, with its details."""
        blocks = re.split(r"\n(?! )", self.report)
        found = [block for block in blocks if block.startswith(place)]
        assert found, f"no fault of {place} in:\n{self.report}"
        return "\n".join(found)


class MiniBook:
    """A small book on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("code/minibook/__init__.py", '"""A package."""\n')
        self.write("code/minibook/core.py", CORE)
        self.write("code/minibook/other.py", OTHER)
        self.write("book/index.md", "# A small book\n\nIt has chapters.\n")

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf8")

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text("utf8")
        assert old in text
        self.write(path, text.replace(old, new))

    def configure(self, **sphinx: object) -> None:
        config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
        config["sphinx"]["config"].update(pallas_rungs_sources="code", **sphinx)
        self.write("_config.yml", yaml.safe_dump(config))
        pages = sorted((self.folder / "book").glob("*.md"))
        files = [{"file": f"book/{page.stem}"} for page in pages if page.stem != "index"]
        toc = {"format": "jb-book", "root": "book/index", "chapters": files}
        self.write("_toc.yml", yaml.safe_dump(toc))

    def build(self, **environment: str) -> Build:
        program = Path(sys.executable).with_name("jupyter-book")
        # The gate executes everything anew; what these books test is when that is not needed.
        kept = {k: v for k, v in os.environ.items() if k != "PALLAS_RUNGS_FRESH"}
        result = subprocess.run(
            [program, "build", "-W", "-n", "--keep-going", "."],
            cwd=self.folder,
            env={**kept, "PALLAS_RUNGS_JOBS": "2", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        return Build(result.returncode, result.stdout)

    def copy(self, folder: Path) -> "MiniBook":
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        twin = MiniBook.__new__(MiniBook)
        twin.folder = folder
        return twin

    def page(self, name: str) -> str:
        return (self.folder / "_build" / "html" / "book" / f"{name}.html").read_text("utf8")


IMPORTS = cell("import math\n\nfrom pallas_rungs.claims import claim, refuses")

ALPHA = chapter(
    IMPORTS
    + cell("", ":source: minibook/core.py:double\n")
    + cell(
        'with claim("doubling `two` gives four", rung="interpret"):\n'
        "    assert double(2) == 4\n"
        'with refuses(TypeError, match="unsupported operand"):\n'
        "    double(int)"
    )
    + "The end.\n"
)
BETA = chapter(
    cell("total(range(4))", ":source: minibook/other.py:total\n:imports:\n\n")
    + cell('import sys\nprint("a word of caution", file=sys.stderr)', ":tags: [expects-stderr]\n")
    + cell("def here():\n    return 1\n\n\nprint(here.__code__.co_filename)")
    + cell('from myst_nb import glue\nglue("answer", 42, display=False)')
    + "The answer is {glue:text}`answer`.\n\n"
    + cell(
        "from minibook.other import triple\nfrom pallas_rungs.claims import claim\n\n"
        'with claim("tripling works", rung="trace"):\n    assert triple(2) == 6'
    ),
    rungs="trace",
)


@pytest.fixture(scope="session")
def small() -> SimpleNamespace:
    """What a test needs that writes a small book of its own: book, chapter, cell."""
    return SimpleNamespace(book=MiniBook, chapter=chapter, cell=cell)


@dataclass
class Healthy:
    """A healthy book and its first build."""

    book: MiniBook
    build: Build


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Healthy:
    """A small book without a fault, built once; copy it before you change it."""
    book = MiniBook(tmp_path_factory.mktemp("healthy"))
    book.write("book/alpha.md", ALPHA)
    book.write("book/beta.md", BETA)
    book.configure()
    return Healthy(book, book.build())


@pytest.fixture
def twin(healthy: Healthy, tmp_path: Path) -> MiniBook:
    """A copy of the healthy book, with what its build left."""
    return healthy.book.copy(tmp_path / "twin")


FAULTY = {
    "assertion": chapter(
        IMPORTS
        + "Prose.\n\n"
        + cell(
            'size = 7\nwith claim("seven is more than eight", rung="interpret"):\n'
            "    assert size > 8"
        )
    ),
    "drawn": chapter(
        cell("from minibook.other import LIMIT")
        + cell("", ":source: minibook/other.py:triple\n")
        + cell("triple(1)\ntriple(5)")
    ),
    "nothing_raised": chapter(IMPORTS + cell('with refuses(ValueError, match="bad"):\n    pass')),
    "other_type": chapter(
        IMPORTS + cell('with refuses(ValueError, match="bad"):\n    raise KeyError("bad")')
    ),
    "other_message": chapter(
        IMPORTS + cell('with refuses(ValueError, match="bad"):\n    raise ValueError("good")')
    ),
    "too_slow": chapter(cell("x = 1") + cell("while True:\n    x += 1")),
    "dead_kernel": chapter(cell("import os") + cell("os._exit(3)")),
    "missing_symbol": chapter(cell("", ":source: minibook/core.py:halve\n")),
    "missing_file": chapter(cell("", ":source: minibook/kore.py:double\n")),
    "missing_name": chapter(cell("", ":source: minibook/core.py:double\n")),
    "no_excerpt": chapter(cell("print(drawn)", ":passages: jax._src.pallas.core\n\n")),
    "raises_tag": chapter(cell("1 / 0", ":tags: [raises-exception]\n")),
    "skip_tag": chapter(cell("1 / 0", ":tags: [skip-execution]\n")),
    "off_switch": chapter(cell("1 / 0"), more='mystnb:\n  execution_mode: "off"\n'),
    "allows_errors": chapter(cell("1 / 0"), more="execution:\n  allow_errors: true\n"),
    "no_notebook": "---\ncovers: []\n---\n\n# Plain\n\n" + cell("1 / 0"),
    "warns": chapter(cell("import warnings") + cell('warnings.warn("beware", stacklevel=1)')),
    "no_code": chapter(cell("y = 1\nx = = 1")),
}
"""Chapters with one fault each, by name."""


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The build of a book in which every chapter but one has a fault of its own."""
    book = MiniBook(tmp_path_factory.mktemp("faulty"))
    book.write("book/alpha.md", ALPHA)
    for name, text in FAULTY.items():
        book.write(f"book/{name}.md", text)
    book.configure(pallas_rungs_cell_seconds=5)
    return book.build()
