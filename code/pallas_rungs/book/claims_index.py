"""The index of claims: every claim of the book by rung, with its place; and their counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from pallas_rungs.book import deferred
from pallas_rungs.book.execute import executed_notebook
from pallas_rungs.book.gather import ClaimRecord, all_claims
from pallas_rungs.book.markup import prose, rung_mark, table
from pallas_rungs.claims import RUNGS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SITE_FILE = "claims.json"

ASKS = {
    "source": "what the installed package says; proves nothing about a run",
    "trace": "does the body trace, with legal refs, shapes and index maps?",
    "interpret": "is the arithmetic right, against a float64 reference?",
    "simulate": "is memory used rightly: revisits, DMAs, semaphores, races?",
    "lower": "do block shapes, dtypes and primitives lower?",
    "compile": "does the chip's own compiler take it?",
    "chip": "what happened on a real chip, recorded with provenance?",
}
"""What each rung asks, in a line."""


def counts(records: Sequence[ClaimRecord]) -> dict[str, int]:
    """Count the claims on each rung, refusals left out."""
    return {
        rung: sum(record.kind == "claim" and record.rung == rung for record in records)
        for rung in RUNGS
    }


def site_data(
    records: Sequence[ClaimRecord], versions: dict[str, dict[str, str]], urls: dict[str, str]
) -> dict[str, Any]:
    """Return what the site's ``claims.json`` holds.

    Args:
        records: claims and refusals.
        versions: for each docname, the versions that it was executed with.
        urls: for each docname, the page's address relative to the site's root.
    """
    return {
        "counts": {**counts(records), "total": sum(counts(records).values())},
        "claims": [
            {
                "kind": record.kind,
                "claim": record.text,
                "rung": record.rung,
                "page": record.docname,
                "anchor": record.anchor,
                "url": f"{urls.get(record.docname, '')}#{record.anchor}",
                "line": record.line,
                "versions": versions.get(record.docname, {}),
            }
            for record in records
        ],
    }


def _site_data(app: Sphinx) -> dict[str, Any]:
    records = all_claims(app)
    pages = {record.docname for record in records}
    versions = {
        page: dict(executed_notebook(app, page).metadata["pallas_rungs"]["versions"])
        for page in pages
    }
    return site_data(records, versions, {page: app.builder.get_target_uri(page) for page in pages})


class ClaimsIndexDirective(SphinxDirective):
    """``{claims-index}``: counts, then a section of claims for each rung, then the refusals."""

    def run(self) -> list[nodes.Node]:
        """Place the counts and the sections."""
        found: list[nodes.Node] = [deferred.place(self.env, "claim-count")]
        for rung in (*RUNGS, "refused"):
            section = nodes.section(ids=[f"claims-{rung}"], names=[])
            name = "Refused, as the text says" if rung == "refused" else rung.capitalize()
            section += nodes.title("", name)
            section += deferred.place(self.env, "claims-of-rung", rung)
            found.append(section)
        return found


class ClaimCountDirective(SphinxDirective):
    """``{claim-count}``: a small table of claims for each rung."""

    def run(self) -> list[nodes.Node]:
        """Place the table."""
        return [deferred.place(self.env, "claim-count")]


class ClaimCountRole(SphinxRole):
    """``{claims}`total```: how many claims the book has, in all or on one rung."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Place the number."""
        if self.text not in {"total", "refused", *RUNGS}:
            words = ", ".join(("total", "refused", *RUNGS))
            said = f"`claims` counts one of {words}, not {self.text!r}"
            return [], [self.inliner.reporter.error(said, line=self.lineno)]
        return [deferred.place(self.env, "claim-number", self.text)], []


def _count_table(app: Sphinx, docname: str, argument: str) -> list[nodes.Node]:
    index = _index_page(app)
    rows: list[list[list[nodes.Node]]] = []
    for rung, number in counts(all_claims(app)).items():
        text: nodes.Node = nodes.Text(str(number))
        if number and index:
            text = deferred.link(app, docname, index, str(number), f"claims-{rung}")
        rows.append([[rung_mark(rung)], [nodes.Text(ASKS[rung])], [text]])
    return [table(["rung", "what it asks", "claims"], rows, classes=["pr-counts"])]


def _index_page(app: Sphinx) -> str:
    """Return the page that holds the index; empty when the book has none."""
    places: dict[str, set[str]] = getattr(app.env, "pallas_rungs_places", {})
    return next((page for page, names in sorted(places.items()) if "claims-of-rung" in names), "")


def _number(app: Sphinx, docname: str, which: str) -> list[nodes.Node]:
    records = all_claims(app)
    if which == "refused":
        return [nodes.Text(str(sum(record.kind == "refusal" for record in records)))]
    found = counts(records)
    return [nodes.Text(str(sum(found.values()) if which == "total" else found[which]))]


def _list(app: Sphinx, docname: str, rung: str) -> list[nodes.Node]:
    records = [
        record
        for record in all_claims(app)
        if (rung == "refused" and record.kind == "refusal")
        or (record.kind == "claim" and record.rung == rung)
    ]
    if rung != "refused":
        head = nodes.paragraph("", "", rung_mark(rung), nodes.Text(f" {ASKS[rung]}"))
    else:
        head = nodes.paragraph("", "Each of these was tried, and failed as the text says.")
    if not records:
        return [head, nodes.paragraph("", "None yet.", classes=["pr-open"])]
    listing = nodes.bullet_list(classes=["pr-claims-list"])
    for record in records:
        sentence = [nodes.literal(text=record.text)] if rung == "refused" else prose(record.text)
        where = nodes.inline(classes=["pr-from"])
        if rung == "refused" and record.rung:
            where += [rung_mark(record.rung), nodes.Text(" ")]
        name = deferred.title(app, record.docname)
        where += deferred.link(app, docname, record.docname, name, record.anchor)
        listing += nodes.list_item("", nodes.paragraph("", "", *sentence, where))
    return [head, listing]


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        text = json.dumps(_site_data(app), indent=1, ensure_ascii=False)
        (Path(app.outdir) / SITE_FILE).write_text(text + "\n", "utf8")


def setup(app: Sphinx) -> None:
    """Register directives and role, and write the site's ``claims.json``."""
    deferred.maker("claim-count", _count_table, _site_data)
    deferred.maker("claims-of-rung", _list, _site_data)
    deferred.maker("claim-number", _number, _site_data)
    app.add_directive("claims-index", ClaimsIndexDirective)
    app.add_directive("claim-count", ClaimCountDirective)
    app.add_role("claims", ClaimCountRole())
    app.connect("build-finished", _write)
