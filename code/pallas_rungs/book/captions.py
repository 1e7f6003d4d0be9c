"""The caption of a drawn cell: the path of the code it shows, linked to the repository."""

from __future__ import annotations

import os
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from pallas_rungs.book.execute import book_of
from pallas_rungs.book.notebooks import CodeCell


def _caption(app: Sphinx, cell: CodeCell) -> nodes.paragraph:
    options = app.config.html_theme_options
    repository = str(options.get("repository_url", "")).rstrip("/")
    branch = options.get("repository_branch", "main")
    caption = nodes.paragraph(classes=["pr-drawn"])
    for position, drawn in enumerate(cell.drawn):
        if position:
            caption += nodes.Text(" · ")
        first, last = drawn.lines[0].number, drawn.lines[-1].number
        file = Path(os.path.relpath(drawn.file, app.srcdir)).as_posix()
        label = nodes.literal(text=f"{drawn.shown}:{drawn.symbol}")
        if repository:
            url = f"{repository}/blob/{branch}/{file}#L{first}-L{last}"
            caption += nodes.reference("", "", label, refuri=url, internal=False)
        else:
            caption += label
    return caption


def _add_captions(app: Sphinx, doctree: nodes.document) -> None:
    chapter = book_of(app).chapters.get(app.env.docname)
    if chapter is None:
        return
    drawn = {cell.index: cell for cell in chapter.cells if cell.drawn}
    for container in list(doctree.findall(nodes.container)):
        cell = drawn.get(container.get("cell_index", -1))
        if cell is not None and container.get("nb_element") == "cell_code":
            container["classes"].append("pr-drawn-cell")
            parent = container.parent
            parent.insert(parent.index(container), _caption(app, cell))


def setup(app: Sphinx) -> None:
    """Put a caption above each drawn cell."""
    app.connect("doctree-read", _add_captions, priority=200)
