"""Chapters as notebooks: MyST text read into cells, drawn cells expanded, forgiveness refused."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from myst_nb.core.read import (
    MystMetadataParsingError,
    is_myst_markdown_notebook,
    read_myst_markdown_notebook,
)
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from pallas_rungs.book.excerpts import PagePassage, passages_on
from pallas_rungs.book.faults import Fault
from pallas_rungs.book.sources import (
    DrawingError,
    Drawn,
    Line,
    bound_names,
    draw,
    import_lines,
    unmet_names,
)
from pallas_rungs.extras import INSTALLED_BY
from pallas_rungs.walk import Passage

EXPECTS_STDERR = "expects-stderr"
"""The tag of a cell whose output to standard error belongs to the lesson."""

FORGIVING_TAGS = {
    "raises-exception": "it would pass when nothing is raised; use `with refuses(...)`",
    "skip-execution": "a cell that is not executed proves nothing",
}
FORGIVING_KEYS = {
    "mystnb": "it could switch execution off or forgive errors",
    "execution": "it could forgive errors or skip the chapter",
    "allow_errors": "it would forgive errors",
    "execution_mode": "it could switch execution off",
}
PASSAGE = "pallas_rungs.walk"
"""Where a notebook imports `Passage` from."""

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")


@dataclass(frozen=True)
class CodeCell:
    """One code cell of a chapter.

    Attributes:
        index: Its place among all cells of the notebook.
        number: Its place among the code cells, from 1; the kernel's ``In[number]``.
        fence: The line of the chapter, from 1, on which the cell opens.
        lines: Where each line of the cell's source stands.
        drawn: The symbols it draws.
        passages: The installed module whose passages on this page it is given; empty if none.
    """

    index: int
    number: int
    fence: int
    lines: tuple[Line, ...]
    drawn: tuple[Drawn, ...] = ()
    passages: str = ""


@dataclass
class Chapter:
    """One chapter with code cells, read but not executed.

    Attributes:
        docname: Sphinx's name of it, such as ``book/start/blocks-and-grids``.
        path: The file.
        shown: The file's path relative to the book's folder.
        notebook: The cells, drawn ones expanded, without outputs.
        cells: The code cells, in order.
        faults: What is wrong with it before anything is executed.
    """

    docname: str
    path: Path
    shown: str
    notebook: NotebookNode
    cells: list[CodeCell] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def metadata(self) -> dict[str, Any]:
        """The front matter."""
        return dict(self.notebook.metadata)

    @property
    def extras(self) -> tuple[str, ...]:
        """The optional extras that its cells cannot do without."""
        return tuple(self.notebook.metadata.get("extras", ()))

    @property
    def passage_modules(self) -> set[str]:
        """The installed modules whose passages cells are given."""
        return {cell.passages for cell in self.cells if cell.passages}

    @property
    def drawn_files(self) -> set[Path]:
        """The files out of which cells are drawn."""
        return {drawn.file for cell in self.cells for drawn in cell.drawn}

    def source(self, cell: CodeCell) -> str:
        """Return the source of a code cell, drawn text included."""
        return str(self.notebook.cells[cell.index].source)


def read_chapter(docname: str, path: Path, shown: str, sources: Path, code: Path) -> Chapter | None:
    """Read a chapter's text into a notebook.

    Args:
        docname: Sphinx's name of the page.
        path: The ``.md`` file.
        shown: Its path in messages.
        sources: The folder to which ``:source:`` options are relative.
        code: The folder from which drawn files are imported.

    Returns:
        The chapter, its faults listed; ``None`` for a page without code cells.
    """
    text = path.read_text("utf8")
    lines = text.splitlines()
    first = _first_cell(lines)
    if first is None:
        return None
    empty = Chapter(docname, path, shown, new_notebook())  # type: ignore[no-untyped-call]
    if not is_myst_markdown_notebook(text):
        empty.faults.append(
            Fault(
                f"{shown}:{first}",
                "the page has code cells but is not a notebook, so nothing would be executed; "
                "its front matter needs jupytext: text_representation: format_name: myst",
            )
        )
        return empty
    try:
        notebook = read_myst_markdown_notebook(text, add_source_map=True, path=path)
    except MystMetadataParsingError as error:
        empty.faults.append(Fault(shown, str(error)))
        return empty
    chapter = Chapter(docname, path, shown, notebook)
    _check_front_matter(chapter, lines)
    _read_cells(chapter, lines, sources)
    _meet_names(chapter, code)
    return chapter


def _first_cell(lines: list[str]) -> int | None:
    """Return the line, from 1, of the first code cell that is not inside another fence."""
    around = ""
    for number, line in enumerate(lines, 1):
        match = _FENCE.match(line)
        if match is None:
            continue
        fence, info = match[1], match[2].strip()
        if around:
            if fence.startswith(around) and not info:
                around = ""
        elif info.startswith("{code-cell}"):
            return number
        else:
            around = fence
    return None


def _check_front_matter(chapter: Chapter, lines: list[str]) -> None:
    for key, why in FORGIVING_KEYS.items():
        if key in chapter.notebook.metadata:
            number = next((n for n, s in enumerate(lines, 1) if s.startswith(f"{key}:")), 1)
            place = f"{chapter.shown}:{number}"
            chapter.faults.append(Fault(place, f"front matter may not hold {key!r}: {why}"))
    for name in chapter.extras:
        if name not in INSTALLED_BY:
            known = ", ".join(INSTALLED_BY)
            cause = f"`extras` names {name!r}, which is none; there are {known}"
            chapter.faults.append(Fault(f"{chapter.shown}:1", cause))
    if chapter.notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        chapter.faults.append(
            Fault(f"{chapter.shown}:1", "the front matter's kernelspec must have name: python3")
        )


def _read_cells(chapter: Chapter, lines: list[str], sources: Path) -> None:
    starts = chapter.notebook.metadata["source_map"]
    passages = passages_on("\n".join(lines))
    number = 0
    for index, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type != "code":
            continue
        number += 1
        fence = starts[index]
        label = f"code cell {number}"
        place = f"{chapter.shown}:{fence}"
        for tag in cell.metadata.get("tags", []):
            if tag in FORGIVING_TAGS:
                cause = f"the tag {tag!r} is refused: {FORGIVING_TAGS[tag]}"
                chapter.faults.append(Fault(place, cause, label))
        if not str(cell.source).strip() and not {"source", "passages"} & set(cell.metadata):
            chapter.faults.append(Fault(place, "the cell is empty", label))
        if "load" in cell.metadata:
            cause = "the option :load: is refused; draw code with :source:"
            chapter.faults.append(Fault(place, cause, label))
        body = _body_lines(chapter.path, lines, fence, str(cell.source))
        drawn: tuple[Drawn, ...] = ()
        if "source" in cell.metadata:
            try:
                drawn = tuple(draw(sources, str(cell.metadata["source"])))
            except DrawingError as error:
                chapter.faults.append(Fault(place, f"drawn cell: {error}", label))
            text, above = _join(drawn, str(cell.source))
            cell.source, body = text, (*above, *body)
        module = ""
        if "passages" in cell.metadata:
            module = str(cell.metadata["passages"] or "").strip()
            found = [p for p in passages if p.module == module]
            if found:
                text, above = _listed(chapter.path, fence, found)
                cell.source, body = text + str(cell.source), (*above, *body)
            else:
                chapter.faults.append(Fault(place, _none_drawn(module, passages), label))
        chapter.cells.append(CodeCell(index, number, fence, body, drawn, module))


def _body_lines(path: Path, lines: list[str], fence: int, body: str) -> tuple[Line, ...]:
    """Find the chapter's lines that are a cell's body: those after the fence and its options."""
    wanted = body.splitlines()
    start = fence
    while lines[start : start + len(wanted)] != wanted and start < len(lines):
        start += 1
    return tuple(Line(path, start + 1 + n) for n in range(len(wanted)))


def _join(drawn: tuple[Drawn, ...], body: str) -> tuple[str, list[Line]]:
    """Set drawn symbols, and then the body, below each other with two blank lines between."""
    text = ""
    above: list[Line] = []
    for part in drawn:
        gap = 2 if text else 0
        text += "\n" * (gap + 1 if text else 0) + part.text
        above += [part.lines[0]] * gap + list(part.lines)
    if body.strip() and drawn:
        text += "\n\n\n" + body
        above += [drawn[-1].lines[-1]] * 2
    return text or body, above


def _listed(path: Path, fence: int, passages: list[PagePassage]) -> tuple[str, list[Line]]:
    """Write passages of a page as the list ``drawn``, each on the line of its directive."""
    rows = [f"    {_literal(found.passage)}," for found in passages]
    text = [f"from {PASSAGE} import Passage", "", "drawn = [", *rows, "]", "", ""]
    here = Line(path, fence)
    return "\n".join(text), [
        *[here] * 3,
        *(
            Line(path, found.line)
            for found in passages
            for _ in _literal(found.passage).split("\n")
        ),
        *[here] * 2,
    ]


def _literal(passage: Passage) -> str:
    """Write a passage as a call; over several lines when it is long."""
    parts = [_quoted(passage.symbol)]
    for name, anchor in (("start", passage.start), ("end", passage.end)):
        parts += [] if anchor is None else [f"{name}={_quoted(anchor)}"]
    line = f"Passage({', '.join(parts)})"
    if len(line) <= 80:
        return line
    return "\n".join(["Passage(", *(f"        {part}," for part in parts), "    )"])


def _quoted(words: str) -> str:
    """Write a string as ruff does: in double quotes where that takes no backslash."""
    return repr(words) if '"' in words else json.dumps(words, ensure_ascii=False)


def _none_drawn(module: str, passages: list[PagePassage]) -> str:
    known = ", ".join(sorted({found.module for found in passages})) or "no module"
    return (
        f"option :passages: the page draws no excerpt of module {module!r}; it draws of {known}. "
        "Correct the name, or draw a passage with the excerpt directive"
    )


def _meet_names(chapter: Chapter, code: Path) -> None:
    """Find drawn symbols that use names of their file which the chapter does not define.

    A cell with the option ``:imports:`` gets import statements for them, above what it draws;
    without the option they are a fault, for the downloaded notebook would not run.
    """
    defined: set[str] = set()
    for cell in chapter.cells:
        defined |= _defined_by(chapter.source(cell))
    if "*" in defined:
        return
    for position, cell in enumerate(chapter.cells):
        node = chapter.notebook.cells[cell.index]
        for drawn in cell.drawn:
            unmet = unmet_names(drawn, defined)
            if not unmet:
                continue
            if "imports" not in node.metadata:
                cause = (
                    f"drawn cell: {drawn.symbol} uses {', '.join(sorted(unmet))} of {drawn.shown}, "
                    "which no cell of the chapter defines; import or draw it, "
                    "or give this cell the option :imports:"
                )
                place = f"{chapter.shown}:{cell.fence}"
                chapter.faults.append(Fault(place, cause, f"code cell {cell.number}"))
                continue
            name = ".".join(drawn.file.relative_to(code).with_suffix("").parts)
            above = import_lines(drawn, unmet, name)
            gap = 0 if str(node.source).startswith(("import ", "from ")) else 2
            node.source = "\n".join([*above, *[""] * gap, str(node.source)])
            origin = Line(drawn.file, 1, f"the imports of {drawn.shown}")
            lines = (*[origin] * (len(above) + gap), *chapter.cells[position].lines)
            chapter.cells[position] = replace(cell, lines=lines)
            defined |= unmet


def _defined_by(source: str) -> set[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()  # a magic, or an error that execution will name
    return {name for node in tree.body for name in bound_names(node)}
