"""A cell is given what its page draws of an installed module: never a second list by hand."""

import pytest

from book.front_matter import HEAD
from pallas_rungs.book.dependencies import chapter_key
from pallas_rungs.book.excerpts import passages_on
from pallas_rungs.book.notebooks import read_chapter
from pallas_rungs.walk import ExcerptError, Passage, excerpt, installed_module, whole_file

CORE = "jax._src.pallas.core"
PROSE = """\
# A page

```{excerpt} jax._src.pallas.core:_get_start_index
```

````{note}
```{excerpt} jax._src.pallas.core:GridMapping.to_lojax
:caption: "A caption: in quotes"
:start: "def to_lojax(self)"
:end: 'return'
- algorithm "return": a note.
```
````

```{excerpt} jax._src.pallas.hlo_interpreter:_get_next_indices
:start: if (hasattr(dtype, "_rules") and
```

```{excerpt} no form
```

````markdown
```{excerpt} jax._src.pallas.core:shown_as_text
```
````

"""
CELL = "```{{code-cell}} python\n:passages: {module}\n\n{body}\n```\n"


def read(tmp_path, module=CORE, body="account = drawn", prose=PROSE):
    path = tmp_path / "chapter.md"
    path.write_text(HEAD + prose + CELL.format(module=module, body=body), "utf8")
    chapter = read_chapter("chapter", path, "chapter.md", tmp_path, tmp_path)
    assert chapter is not None
    return chapter


def run(chapter):
    names = {}
    exec(chapter.source(chapter.cells[0]), names)
    return names


def test_a_pages_passages_are_found_with_their_lines():
    assert [(p.module, p.passage, p.line) for p in passages_on(PROSE)] == [
        (CORE, Passage("_get_start_index"), 3),
        (CORE, Passage("GridMapping.to_lojax", start="def to_lojax(self)", end="return"), 7),
        (
            "jax._src.pallas.hlo_interpreter",
            Passage("_get_next_indices", start='if (hasattr(dtype, "_rules") and'),
            15,
        ),
    ]


def test_a_cell_is_given_the_passages_of_its_module(tmp_path):
    names = run(read(tmp_path))
    assert names["account"] == names["drawn"]
    assert names["drawn"] == [
        Passage("_get_start_index"),
        Passage("GridMapping.to_lojax", start="def to_lojax(self)", end="return"),
    ]
    other = run(read(tmp_path, module="jax._src.pallas.hlo_interpreter"))
    assert other["drawn"][0].start == 'if (hasattr(dtype, "_rules") and'


def test_the_list_is_ordinary_code_and_each_line_knows_where_it_comes_from(tmp_path):
    chapter = read(tmp_path)
    (cell,) = chapter.cells
    source = chapter.source(cell).splitlines()
    assert source[:4] == [
        "from pallas_rungs.walk import Passage",
        "",
        "drawn = [",
        '    Passage("_get_start_index"),',
    ]
    assert len(cell.lines) == len(source)
    where = dict(zip(source, cell.lines, strict=True))
    page = chapter.path.read_text("utf8").splitlines()
    drawn_on = page[where['    Passage("_get_start_index"),'].number - 1]
    assert drawn_on == "```{excerpt} jax._src.pallas.core:_get_start_index"
    assert page[where["account = drawn"].number - 1] == "account = drawn"


def test_a_long_passage_takes_several_lines(tmp_path):
    end = "a " * 40 + "z"
    prose = f'```{{excerpt}} {CORE}:f\n:start: "it\'s"\n:end: {end}\n```\n\n'
    chapter = read(tmp_path, prose=prose)
    (cell,) = chapter.cells
    assert len(cell.lines) == len(chapter.source(cell).splitlines())
    assert run(chapter)["drawn"] == [Passage("f", start="it's", end=end)]


def test_the_account_counts_what_the_directive_draws(tmp_path):
    prose = f"```{{excerpt}} {CORE}:_get_start_index\n```\n\n"
    body = f'from pallas_rungs.walk import whole_file\naccount = whole_file("{CORE}", drawn)'
    account = run(read(tmp_path, prose=prose, body=body))["account"]
    span = excerpt(CORE, "_get_start_index").span
    explained = [n for n, name in enumerate(account.classes, 1) if name == "explained"]
    assert (explained[0], explained[-1]) == (span.first, span.last)
    assert account.classes == whole_file(CORE, [Passage("_get_start_index")]).classes


@pytest.mark.parametrize("module", ["jax._src.pallas.mosaic.core", ""])
def test_a_module_that_the_page_does_not_draw_is_a_fault(tmp_path, module):
    (fault,) = read(tmp_path, module=module).faults
    assert fault.place == f"chapter.md:{len((HEAD + PROSE).splitlines()) + 1}"
    assert f"option :passages: the page draws no excerpt of module {module!r}" in fault.cause
    assert "it draws of jax._src.pallas.core, jax._src.pallas.hlo_interpreter" in fault.cause


def test_the_key_sees_passages_and_the_installed_text(tmp_path, monkeypatch):
    roots = (tmp_path / "code",)
    roots[0].mkdir()
    key = chapter_key(read(tmp_path), roots, {})
    assert chapter_key(read(tmp_path, prose=PROSE + "Words.\n\n"), roots, {}) == key
    fewer = PROSE.replace(":_get_start_index", ":_get_next_index")
    assert chapter_key(read(tmp_path, prose=fewer), roots, {}) != key

    found = installed_module(CORE)
    monkeypatch.setattr(
        "pallas_rungs.book.dependencies.installed_module",
        lambda module: type(found)(**{**vars(found), "source": found.source + "\n# edited\n"}),
    )
    edited = chapter_key(read(tmp_path), roots, {})
    assert edited != key

    def gone(module):
        raise ExcerptError("gone")

    monkeypatch.setattr("pallas_rungs.book.dependencies.installed_module", gone)
    assert chapter_key(read(tmp_path), roots, {}) not in (key, edited)
