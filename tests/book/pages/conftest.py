"""A small book that uses every part of a page, built once by the real program."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from book.front_matter import front_matter

ROOT = Path(__file__).resolve().parents[3]

INDEX = """\
# A small book

It holds {claims}`total` claims, {claims}`interpret` of them interpreted.

```{claim-count}
```
"""

FIRST = """\
# The first page

Sums, of *all* kinds, with `jnp` and with $\\frac{M}{b_m}$ programs.

(a-sum)=
## A sum

```{code-cell} python
from pallas_rungs.claims import claim, refuses

total = 1 + 1
print(total)
```

```{code-cell} python
with claim("One and one is `2`, & not *3*.", rung="interpret"):
    assert total == 2
with claim("Text is no number.", rung="trace"):
    with refuses(TypeError, match="unsupported operand"):
        1 + "1"
```

| a | b |
|---|---|
| 1 | 2 |

$$
y_i = \\sum_{j=0}^{N-1} x_j
$$
"""

SECOND = """\
# The second page

See {ref}`the sum <a-sum>`, {doc}`first`, [the first page](first.md) and [its sum](#a-sum).

:::{note}
A note about {ref}`a-sum`.
:::

:::{dropdown} Answer
It is `2`.
:::

```python
plain = "{ref}`not a role`"
```

```{code-cell} python
:tags: [hide-input]
from pallas_rungs.claims import claim

with claim("Two and two is four.", rung="interpret"):
    assert 2 + 2 == 4
```
"""

CLAIMS = "# Claims\n\n```{claims-index}\n```\n"
COVERAGE = "# Coverage\n\n```{coverage}\n```\n"

TOC = """\
format: jb-book
root: book/index
parts:
  - caption: Pages
    chapters:
      - file: book/part/first
      - file: book/part/second
  - caption: Reference
    chapters:
      - file: book/claims
      - file: book/coverage
"""


def front(covers="", needs="", rungs="interpret", minutes=3):
    return front_matter(covers=covers, needs=needs, rungs=rungs, minutes=minutes)


@dataclass
class SmallBook:
    """A folder with a book in it."""

    folder: Path

    @property
    def site(self):
        return self.folder / "_build" / "html"

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")

    def page(self, name):
        return (self.site / f"{name}.html").read_text("utf8")

    def build(self):
        """Builds; returns the exit code and everything said, without colours."""
        command = [
            str(Path(sys.executable).parent / "jupyter-book"),
            *("build", "-W", "-n", "--keep-going"),
            *("--toc", str(self.folder / "_toc.yml"), str(self.folder)),
        ]
        environment = {**os.environ, "NO_COLOR": "1", "SOURCE_DATE_EPOCH": "1790000000"}
        environment["PALLAS_RUNGS_FRESH"] = "0"
        run = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=300, check=False
        )
        return run.returncode, re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr)


def write_small_book(folder):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    (folder / "code").mkdir(parents=True)
    book = SmallBook(folder)
    book.write("_config.yml", yaml.safe_dump(config))
    book.write("_toc.yml", TOC)
    book.write("book/index.md", INDEX)
    book.write("book/part/first.md", front(covers="M-01, M-02", rungs="trace, interpret") + FIRST)
    book.write("book/part/second.md", front(covers="M-02, T-08", needs="part/first") + SECOND)
    book.write("book/claims.md", CLAIMS)
    book.write("book/coverage.md", COVERAGE)
    return book


@pytest.fixture
def small_book(tmp_path):
    """A small book that nobody has built."""
    return write_small_book(tmp_path / "small")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A small book, built; tests only look at it."""
    book = write_small_book(tmp_path_factory.mktemp("small") / "book")
    code, said = book.build()
    assert code == 0, said
    return book
