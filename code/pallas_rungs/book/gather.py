"""Claims and refusals, gathered from executed outputs, and the page's list of what it proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from pallas_rungs.book.execute import book_of, chapter_docnames, executed_notebook
from pallas_rungs.claims import MIME

_log = logging.getLogger(__name__)

SECTION_ID = "what-this-page-proved"
_REMOVING = {"remove-cell", "remove_cell", "remove-output", "remove_output"}


@dataclass(frozen=True)
class ClaimRecord:
    """One claim or refusal that an executed chapter left.

    Attributes:
        docname: The chapter.
        kind: ``claim``, ``refusal``, or ``unproved`` (a claim that this machine cannot check).
        text: The sentence; of a refusal its type and first line.
        rung: The rung that proves it; empty for a refusal that names none.
        anchor: The HTML id on the chapter's page.
        cell: The code cell, from 1.
        line: The line of the chapter on which that cell opens.
        error_type: Of a refusal: the exception's type.
        message: Of a refusal: the whole message.
    """

    docname: str
    kind: Literal["claim", "refusal", "unproved"]
    text: str
    rung: str
    anchor: str
    cell: int
    line: int
    error_type: str = ""
    message: str = ""


def claims_of(app: Sphinx, docname: str) -> list[ClaimRecord]:
    """Return the claims and refusals of a chapter, in the order in which they were proved.

    A page without code cells has none.
    """
    book = book_of(app)
    if docname not in book.executions:
        return []
    notebook = executed_notebook(app, docname)
    found = []
    for cell in book.chapters[docname].cells:
        for output in notebook.cells[cell.index].outputs:
            record = output.get("data", {}).get(MIME)
            if record is not None:
                found.append(
                    ClaimRecord(
                        docname=docname,
                        kind=record["kind"],
                        text=record["text"],
                        rung=record["rung"],
                        anchor=record["anchor"],
                        cell=cell.number,
                        line=cell.fence,
                        error_type=record.get("type", ""),
                        message=record.get("message", ""),
                    )
                )
    return found


def all_claims(app: Sphinx) -> list[ClaimRecord]:
    """Return the claims and refusals of all chapters, chapter by chapter."""
    return [record for docname in chapter_docnames(app) for record in claims_of(app, docname)]


def _check_shown(app: Sphinx, records: list[ClaimRecord]) -> None:
    """Warn of claims whose anchor the page does not have, or has twice."""
    seen: dict[str, ClaimRecord] = {}
    for record in records:
        where = (record.docname, record.line)
        chapter = book_of(app).chapters[record.docname]
        cell = chapter.cells[record.cell - 1]
        tags = set(chapter.notebook.cells[cell.index].metadata.get("tags", []))
        if tags & _REMOVING:
            _log.warning(
                "code cell %d: a %s in a cell whose output is removed cannot be seen: %s",
                *(record.cell, record.kind, record.text),
                location=where,
            )
        if record.anchor in seen:
            _log.warning(
                "code cell %d: the page has this %s twice; word one differently: %s",
                *(record.cell, record.kind, record.text),
                location=where,
            )
        seen[record.anchor] = record


def _prose(text: str) -> list[nodes.Node]:
    """A sentence with `backticks` as text and code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [nodes.Text(text)]
    return [
        nodes.literal(text=part) if position % 2 else nodes.Text(part)
        for position, part in enumerate(parts)
        if part
    ]


def _item(record: ClaimRecord) -> nodes.list_item:
    paragraph = nodes.paragraph()
    if record.rung:
        paragraph += nodes.inline("", record.rung, classes=["pr-rung", f"pr-rung-{record.rung}"])
        paragraph += nodes.Text(" ")
    if record.kind == "refusal":
        paragraph += nodes.literal(text=record.text)
    else:
        paragraph += _prose(record.text)
    paragraph += nodes.Text(" ")
    link = nodes.reference(
        "", f"cell {record.cell}", refuri=f"#{record.anchor}", internal=True, classes=["pr-where"]
    )
    link["reftitle"] = "Go to the place on this page that proves it"
    paragraph += link
    return nodes.list_item("", paragraph)


def _section(records: list[ClaimRecord]) -> nodes.section:
    section = nodes.section(ids=[SECTION_ID], names=[], classes=["pr-proved"])
    section += nodes.title("", "What this page proved")
    claims = [record for record in records if record.kind == "claim"]
    refusals = [record for record in records if record.kind == "refusal"]
    unproved = [record for record in records if record.kind == "unproved"]
    if not records:
        section += nodes.paragraph(
            "", "Its cells ran to their end when this page was built; it makes no further claim."
        )
    if claims:
        text = "Each was asserted by a cell of this page when the page was built."
        section += nodes.paragraph("", text)
        section += nodes.bullet_list("", *map(_item, claims), classes=["pr-proved-list"])
    if refusals:
        section += nodes.paragraph("", "And these were refused, as the text says:")
        section += nodes.bullet_list("", *map(_item, refusals), classes=["pr-proved-list"])
    if unproved:
        text = "Not checked in this build: they rest on a record, or need what was not installed:"
        section += nodes.paragraph("", text)
        section += nodes.bullet_list("", *map(_item, unproved), classes=["pr-proved-list"])
    return section


def _append_proved(app: Sphinx, doctree: nodes.document) -> None:
    """Append the section, before Sphinx collects the page's table of contents."""
    docname = app.env.docname
    if docname not in book_of(app).executions:
        return
    records = claims_of(app, docname)
    _check_shown(app, records)
    home: nodes.Element = next(iter(doctree.findall(nodes.section)), doctree)
    home.append(_section(records))


def setup(app: Sphinx) -> None:
    """Append "What this page proved" to each chapter with cells."""
    app.connect("doctree-read", _append_proved, priority=300)
