"""A book with a page that needs an extra which is not here: it is built, and the page says so."""

import json

import nbformat
import pytest

from pallas_rungs import extras
from pallas_rungs.book.notebook_export import install_cell

from .conftest import front

PAGE = """\
# A page of a library

```{excerpt} tokamax._src.ops.op:Op
:caption: The fields of `Op`
- schedule "config": the choice.
```

```{code-cell} python
:passages: tokamax._src.ops.op
from pallas_rungs import extras
from pallas_rungs.claims import claim, refuses

extras.open_tokamax()
```

```{code-cell} python
:tags: [hide-input]
with claim(
    "An op is a record, "
    "and `frozen`.",
    rung="source",
):
    assert False, "this cell is not executed"
with claim("It has two hooks.", rung="source"), refuses(ValueError, match="x"):
    pass
```
"""


def without(book, monkeypatch, tmp_path):
    monkeypatch.setenv(extras.variable("tokamax"), str(tmp_path / "nothing"))
    text = front(covers="M-02", rungs="source").replace("---\n\n", "extras: [tokamax]\n---\n\n")
    book.write("book/part/second.md", text + PAGE)
    return book.build()


def test_the_page_is_shown_whole_and_marked(small_book, monkeypatch, tmp_path):
    code, said = without(small_book, monkeypatch, tmp_path)
    assert code == 0, said
    assert "not executed: book/part/second.md needs tokamax" in said
    html = small_book.page("book/part/second")
    assert html.count("Not executed in this build, where tokamax is not installed") == 2
    assert "Not drawn in this build" in html
    assert "the choice." in html
    assert "not checked in this build: tokamax is not installed here" in html
    assert "Not checked in this build: they rest on a record, or need what was not" in html
    claims = json.loads((small_book.site / "claims.json").read_text())
    kinds = {entry["claim"]: entry["kind"] for entry in claims["claims"]}
    assert kinds["An op is a record, and `frozen`."] == "unproved"
    assert kinds["It has two hooks."] == "unproved"
    assert claims["counts"]["source"] == 0
    notebook = nbformat.read(small_book.site / "notebooks/part/second.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert "tokamax" not in notebook.cells[0].source


@pytest.mark.skipif(bool(extras.why_missing("tokamax")), reason="tokamax is needed: make tokamax")
def test_the_page_is_executed_once_the_extra_is_there(small_book, monkeypatch, tmp_path):
    code, said = without(small_book, monkeypatch, tmp_path)
    assert code == 0, said
    monkeypatch.delenv(extras.variable("tokamax"))
    code, said = small_book.build()
    assert code != 0
    assert "this cell is not executed" in said


def test_an_unknown_extra_fails_the_build(small_book):
    text = front(covers="M-02").replace("---\n\n", "extras: [tokamacs]\n---\n\n")
    small_book.write("book/part/second.md", text + "# A\n\n```{code-cell} python\n1\n```\n")
    code, said = small_book.build()
    assert code != 0
    assert "`extras` names 'tokamacs', which is none; there are tokamax" in said


def test_the_notebook_installs_what_the_page_needs_without_its_dependencies():
    cell = install_cell({"jax": "1"}, "", "", {"tokamax": "0.1", "beside": "2"})
    assert cell.splitlines()[1:] == [
        "%pip install -q 'jax==1'",
        "%pip install -q --no-deps 'tokamax==0.1' 'beside==2'",
        "%env JAX_PLATFORMS=cpu",
    ]
    assert "--no-deps" not in install_cell({"jax": "1"}, "", "")
