"""No page shows a figure of time or rate without saying where it comes from.

A figure is a number with a unit, `20.3 µs`, `819 GB/s`, or whatever stands below a heading with
such a unit. In the output of a cell it needs its provenance in that output: `figures.time_table`,
`told` and `sourced` put it there, and an estimate printed whole says its own. The sentence of a
claim and the message of a refusal need none, since their cell has just held them against something.
Constants of chips, which are rates and never times, are marked by `table(..., source=…)`. In prose
a figure is glued from a cell, or it is one that a claim of the page asserts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pallas_rungs.book.execute import book_of, executed_notebook
from pallas_rungs.book.faults import Fault, fault_log
from pallas_rungs.book.gather import claims_of
from pallas_rungs.claims import MIME as CLAIM
from pallas_rungs.figures.tables import CONSTANTS
from pallas_rungs.performance.provenance import MIME, Provenance, ProvenanceError, stands_in
from pallas_rungs.performance.units import figures_in, unit_in_heading

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

    from pallas_rungs.book.notebooks import Chapter

_HIDDEN: Final = {"remove-cell", "remove_cell", "remove-output", "remove_output"}
_UNSEEN: Final = re.compile(r"<(style|script)\b.*?</\1>", re.S | re.I)
_TAG: Final = re.compile(r"<[^>]*>")
_HEADING: Final = re.compile(r"<(th|text|caption)\b[^>]*>(.*?)</\1>", re.S)
_ATTRIBUTE: Final = re.compile(r"""\b(?:alt|title|aria-label)=("[^"]*"|'[^']*')""")
_FENCE: Final = re.compile(r"^\s*(`{3,}|~{3,}|:{3,})\s*(\{[^}]*\}|\S*)")
_CODE: Final = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|\]\([^)]*\)|<!--.*?-->")
_MARKS: Final = (
    (re.compile(r"\\(?:mathrm|text|mathit)\{([^}]*)\}"), r"\1"),
    (re.compile(r"\\mu(?![a-z])\s*"), "µ"),
    (re.compile(r"\\[,;:! ]"), " "),
    (re.compile(r"[*$~]"), ""),
)
_WRITTEN: Final = ("text/markdown", "text/latex", "text/plain")
_DEEDS: Final = (
    "show it by `time_table`, `told` or `sourced` of pallas_rungs.figures with the estimate or "
    "the measurement itself, or assert it in a claim"
)
_PROSE_DEEDS: Final = "glue it from a cell that computes it, or assert it in a claim of the page"
_CAUSE: Final = "a figure without provenance"
_CONSTANTS_ONLY: Final = "a mark of constants covers rates of chips; a time needs its provenance"


def figures_without_provenance(output: dict[str, Any]) -> tuple[list[str], str]:
    """Return the figures of one output that nothing vouches for, and why; empty where all is well.

    Args:
      output: in the notebook format.
    """
    data = output.get("data", {})
    if CLAIM in data:
        return [], ""
    markup = "".join(output.get("text", "")) or "".join(data.get("text/html", ""))
    if "text/html" in data:
        seen = _UNSEEN.sub(" ", markup)
        told = (found[1][1:-1] for found in _ATTRIBUTE.finditer(seen))
        text = unescape("\n".join((_TAG.sub("\n", seen), *told)))
        headings = [unescape(_TAG.sub(" ", found[2])) for found in _HEADING.finditer(seen)]
    else:
        written = ("".join(data.get(mime, "")) for mime in _WRITTEN)
        text, headings = markup or "\n".join(map(_unmarked, written)), []
    found = list(figures_in(text))
    announced = ((heading.strip(), unit_in_heading(heading)) for heading in headings)
    found += [(f"under {heading!r}", unit[1]) for heading, unit in announced if unit]
    if not found or stands_in(text):
        return [], ""
    marks = data.get(MIME)
    if not marks:
        return [figure for figure, _ in found], _DEEDS
    try:
        kinds = [_is_constant(mark) for mark in marks]
    except ProvenanceError as error:
        return [figure for figure, _ in found], str(error)
    times = [figure for figure, kind in found if kind == "time"]
    return (times, _CONSTANTS_ONLY) if all(kinds) and times else ([], "")


def _unmarked(text: str) -> str:
    """Prose without marks of emphasis and of mathematics, which may stand before a unit."""
    for pattern, instead in _MARKS:
        text = pattern.sub(instead, text)
    return unescape(text)


def _is_constant(mark: dict[str, Any]) -> bool:
    """Whether a mark is of a chip's constants; else it must be a whole provenance."""
    if mark.get("kind") == CONSTANTS and mark.get("source"):
        return True
    Provenance.from_json(mark)
    return False


def prose_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page that are prose, from 1, without front matter, code and addresses.

    Args:
      text: the page in MyST Markdown.
    """
    lines = text.splitlines()
    start = 0
    if lines and lines[0].rstrip() == "---":
        start = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0) + 1
    around: list[tuple[str, bool]] = []  # the open fences, and whether what is in them is code
    for number, line in enumerate(lines[start:], start + 1):
        fence = _FENCE.match(line)
        in_code = bool(around) and around[-1][1]
        if fence and around and not fence[2] and fence[1].startswith(around[-1][0]):
            around.pop()
        elif in_code:
            continue
        elif fence:
            directive = fence[2].startswith("{") and fence[2] != "{code-cell}"
            around.append((fence[1], not directive))
            if directive:
                yield number, line[fence.end() :]
        else:
            yield number, _unmarked(_CODE.sub(" ", line))


def bare_in_prose(text: str, asserted: str) -> Iterator[tuple[int, str]]:
    """Yield line and figure of each figure in prose that no claim asserts.

    Args:
      text: the page in MyST Markdown.
      asserted: the sentences of its claims.
    """
    proved = {figure for figure, _ in figures_in(asserted)}
    for number, line in prose_of(text):
        for figure, _ in figures_in(line):
            if figure not in proved:
                yield number, figure


def output_faults(chapter: Chapter, notebook: NotebookNode) -> list[Fault]:
    """Return a fault for each output of a chapter that shows a figure without provenance.

    Args:
      chapter: the chapter.
      notebook: the same with outputs; cells whose output is removed are passed over.
    """
    found = []
    for cell in chapter.cells:
        node = notebook.cells[cell.index]
        if _HIDDEN & set(node.metadata.get("tags", [])):
            continue
        for output in node.get("outputs", []):
            figures, why = figures_without_provenance(output)
            if figures:
                cause = f"{_CAUSE}: {', '.join(dict.fromkeys(figures[:5]))}"
                place = f"{chapter.shown}:{cell.fence}"
                found.append(Fault(place, cause, f"code cell {cell.number}", (why,)))
    return found


def prose_faults(shown: str, text: str, asserted: str) -> list[Fault]:
    """Return a fault for each figure in a page's prose that no claim asserts.

    Args:
      shown: the page's path, for messages.
      text: the page in MyST Markdown.
      asserted: the sentences of its claims.
    """
    return [
        Fault(f"{shown}:{line}", f"{_CAUSE}: {figure}", "prose", (_PROSE_DEEDS,))
        for line, figure in bare_in_prose(text, asserted)
    ]


def _check(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Note a fault for each output, and each line of prose, with a figure that is bare."""
    log, book = fault_log(app), book_of(app)
    for docname in sorted(env.found_docs):
        path = Path(env.doc2path(docname))
        found: list[Fault] = []
        if path.suffix == ".md":
            asserted = "\n".join(record.text for record in claims_of(app, docname))
            shown = Path(env.doc2path(docname, base=False)).as_posix()
            found += prose_faults(shown, path.read_text("utf8"), asserted)
        if docname in book.executions:
            found += output_faults(book.chapters[docname], executed_notebook(app, docname))
        for fault in found:
            log.add(fault)


def setup(app: Sphinx) -> None:
    """Look at every page's figures once its chapters are executed."""
    app.connect("env-before-read-docs", _check, priority=150)
