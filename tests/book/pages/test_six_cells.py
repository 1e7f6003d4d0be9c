"""The notebook to take away: plain JAX up to its last cell, and a fault stops the right cell."""

import ast
import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from pallas_rungs.book.execute import kernel_environment
from pallas_rungs.book.notebooks import read_chapter

PAGE = "book/evidence/six-cells.md"


@pytest.fixture(scope="module")
def cells(root):
    """The page's six code cells; the hidden one, for the book alone, is left out."""
    code = root / "code"
    chapter = read_chapter("six-cells", root / PAGE, PAGE, code / "pallas_rungs", code)
    assert chapter is not None
    assert not chapter.faults
    return [
        cell.source
        for cell in chapter.notebook.cells
        if cell.cell_type == "code" and "hide-input" not in cell.metadata.get("tags", [])
    ]


def stopped_in(cells, monkeypatch, root):
    """Run the cells as a notebook; return the number of the cell that failed, and its error."""
    for name, value in kernel_environment(root / "code", fresh=True).items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    try:
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    except CellExecutionError as error:
        failed = [
            number
            for number, cell in enumerate(notebook.cells, start=1)
            if any(output.output_type == "error" for output in cell.outputs)
        ]
        return failed[0], str(error)
    return None, ""


def planted(cells, number, old, new):
    """The cells with one piece of one of them replaced; the piece must be there."""
    text = cells[number - 1]
    assert text.count(old) == 1
    return [*cells[: number - 1], text.replace(old, new), *cells[number:]]


def imported(source):
    tree = ast.walk(ast.parse(source))
    names = set()
    for node in tree:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    return names


def test_six_cells_under_six_headings(cells, root):
    headings = re.findall(r"^## (\d)\. ", (root / PAGE).read_text("utf8"), flags=re.M)
    assert headings == list("123456")
    assert len(cells) == 6


def test_first_five_need_nothing_but_jax_and_numpy(cells):
    assert set().union(*map(imported, cells[:5])) == {"jax", "numpy"}


def test_reset_comes_before_each_simulated_run(cells):
    loop = cells[4].partition("for name")[2]
    assert 0 < loop.index("reset_tpu_interpret_mode_state()") < loop.index("InterpretParams(")


@pytest.mark.parametrize(
    ("old", "new", "number", "words"),
    [
        pytest.param("(i, k)", "(i, 0)", 4, "Not equal to tolerance", id="wrong block"),
        pytest.param(
            '"parallel", "arbitrary"', '"parallel", "parallel"', 5, "", id="parallel reduction"
        ),
    ],
)
def test_fault_in_the_kernel_stops_the_right_cell(
    cells, monkeypatch, root, old, new, number, words
):
    found, error = stopped_in(planted(cells, 3, old, new), monkeypatch, root)
    assert found == number
    assert words in error
