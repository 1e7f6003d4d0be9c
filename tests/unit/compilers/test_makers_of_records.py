"""What a record is made by must be there when it is made.

A build reads a record and does not call its maker, so a maker that uses a name which the page
defines further down is found only when somebody makes the record anew. It is found here instead.
"""

from __future__ import annotations

import builtins
import symtable
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_rungs.book.notebooks import read_chapter

ROOT = Path(__file__).resolve().parents[3]
CODE = ROOT / "code"
ASKING = (" live_or_recorded(", " recorded(")
PAGES = [
    page
    for page in sorted(ROOT.glob("book/*/*.md"))
    if any(asked in page.read_text("utf-8") for asked in ASKING)
]


def used_before_defined(cells: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the cell that makes a record, and a name in its functions that is not defined yet."""
    defined = {*dir(builtins), "display", "get_ipython"}
    wanted: set[str] = set()
    for number, code in enumerate(cells, start=1):
        table = symtable.symtable(code, f"cell {number}", "exec")
        defined |= {
            it.get_name() for it in table.get_symbols() if it.is_assigned() or it.is_imported()
        }
        for scope in _within(table):
            wanted |= {it.get_name() for it in scope.get_symbols() if it.is_global()}
        if any(f"={asked}" in code for asked in ASKING):
            yield from ((number, name) for name in sorted(wanted - defined))


def _within(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for scope in table.get_children():
        yield scope
        yield from _within(scope)


def test_a_name_that_comes_later_is_found() -> None:
    maker = "def made():\n    return [helper(each) for each in names]\n"
    asks = "found = recorded('name', made, libtpu)\n"
    later = "def helper(each):\n    return each\n"
    start = "from pallas_rungs.compilers.records import recorded\nnames, libtpu = [], None\n"
    assert list(used_before_defined([start, maker + asks, later])) == [(2, "helper")]
    assert list(used_before_defined([start, later, maker + asks])) == []
    assert list(used_before_defined([start, maker, later])) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_every_maker_has_its_names(page: Path) -> None:
    shown = page.relative_to(ROOT).as_posix()
    chapter = read_chapter(page.stem, page, shown, CODE / "pallas_rungs", CODE)
    assert chapter is not None
    assert not chapter.faults
    cells = [cell.source for cell in chapter.notebook.cells if cell.cell_type == "code"]
    assert not list(used_before_defined(cells))
