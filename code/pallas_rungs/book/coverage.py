"""Coverage: which page teaches what the book must teach, and what is still open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from pallas_rungs.book import deferred, front_matter
from pallas_rungs.book.coverage_list import coverage_list
from pallas_rungs.book.faults import Fault, fault_log
from pallas_rungs.book.front_matter import Page, pages_of
from pallas_rungs.book.markup import prose, table

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

SITE_FILE = "coverage.json"


def covered_by(pages: Mapping[str, Page]) -> dict[str, list[str]]:
    """Return, for every id of the list, the docnames of the pages that cover it."""
    return {
        item.id: [page.docname for page in pages.values() if item.id in page.covers]
        for item in coverage_list().items
    }


def site_data(pages: Mapping[str, Page], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return what the site's ``coverage.json`` holds.

    Args:
        pages: the front matter of all pages.
        titles: their titles, by docname.
    """
    by_id = covered_by(pages)
    return {
        "total": len(by_id),
        "covered": sum(bool(found) for found in by_id.values()),
        "areas": [
            {
                "id": area,
                "title": name,
                "items": [
                    {
                        "id": item.id,
                        "text": item.text,
                        "prose": item.prose,
                        "pages": [
                            {"page": docname, "title": titles.get(docname, docname)}
                            for docname in by_id[item.id]
                        ],
                    }
                    for item in coverage_list().of(area)
                ],
            }
            for area, name in coverage_list().areas.items()
        ],
    }


class CoverageDirective(SphinxDirective):
    """``{coverage}``: how much is covered, then every item by area with its pages."""

    def run(self) -> list[nodes.Node]:
        """Place the summary, and a section with a table for each area."""
        found: list[nodes.Node] = [deferred.place(self.env, "coverage-summary")]
        for area, name in coverage_list().areas.items():
            section = nodes.section(ids=[f"area-{area.lower()}"], names=[])
            section += nodes.title("", f"{area} · {name}")
            section += deferred.place(self.env, "coverage-area", area)
            found.append(section)
        return found


def _summary(app: Sphinx, docname: str, argument: str) -> list[nodes.Node]:
    by_id = covered_by(pages_of(app))
    covered = sum(bool(found) for found in by_id.values())
    said = f"{covered} of {len(by_id)} are covered; {len(by_id) - covered} open."
    text = nodes.paragraph("", said)
    bar = nodes.raw(
        "",
        f'<progress class="pr-progress" max="{len(by_id)}" value="{covered}" '
        f'aria-label="Covered">{covered} of {len(by_id)}</progress>',
        format="html",
    )
    rows: list[list[list[nodes.Node]]] = []
    for area, name in coverage_list().areas.items():
        items = coverage_list().of(area)
        done = sum(bool(by_id[item.id]) for item in items)
        anchor = nodes.reference("", f"{area} · {name}", refuri=f"#area-{area.lower()}")
        rows.append([[anchor], [nodes.Text(f"{done} of {len(items)}")]])
    return [text, bar, table(["area", "covered"], rows, classes=["pr-counts"])]


def _area(app: Sphinx, docname: str, area: str) -> list[nodes.Node]:
    by_id = covered_by(pages_of(app))
    rows: list[list[list[nodes.Node]]] = []
    ids = []
    for item in coverage_list().of(area):
        where: list[nodes.Node] = []
        for page in by_id[item.id]:
            if where:
                where.append(nodes.Text(", "))
            where.append(deferred.link(app, docname, page, deferred.title(app, page)))
        fact = prose(item.text, stars=True) + (
            [nodes.emphasis("", " (prose)")] if item.prose else []
        )
        open_mark = nodes.inline("", "open", classes=["pr-open"])
        rows.append([[nodes.Text(item.id)], fact, where or [open_mark]])
        ids.append(item.anchor)
    return [table(["id", "what it is", "where"], rows, classes=["pr-coverage"], ids=ids)]


def _inputs(app: Sphinx) -> Any:
    pages = pages_of(app)
    return site_data(pages, {docname: deferred.title(app, docname) for docname in pages})


def _check_complete(app: Sphinx, env: BuildEnvironment) -> None:
    """Fail for items that no page covers, once the book says that it is complete."""
    if not app.config.pallas_rungs_coverage_complete:
        return
    for item, found in covered_by(pages_of(app)).items():
        if not found:
            said = f"no page covers {item}, and the book calls itself complete"
            fault_log(app).add(Fault("", said))


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        text = json.dumps(_inputs(app), indent=1, ensure_ascii=False)
        (Path(app.outdir) / SITE_FILE).write_text(text + "\n", "utf8")


def setup(app: Sphinx) -> None:
    """Register the directive, the check of front matter, and the site's ``coverage.json``."""
    app.add_config_value("pallas_rungs_coverage_complete", False, "")
    front_matter.setup(app)
    deferred.setup(app)
    deferred.maker("coverage-summary", _summary, _inputs)
    deferred.maker("coverage-area", _area, _inputs)
    app.add_directive("coverage", CoverageDirective)
    app.connect("env-check-consistency", _check_complete)
    app.connect("build-finished", _write)
