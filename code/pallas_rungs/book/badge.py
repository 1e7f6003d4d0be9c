"""The lines under a page's title: on what it was verified, by which rungs, from which commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

from pallas_rungs.book import deferred
from pallas_rungs.book.coverage_list import coverage_list
from pallas_rungs.book.execute import chapter_docnames, executed_notebook
from pallas_rungs.book.front_matter import Page, pages_of
from pallas_rungs.book.history import History, history, in_words
from pallas_rungs.book.notebook_export import colab_address, notebook_path
from pallas_rungs.book.theme import icon

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SHOWN = ("jax", "jaxlib", "libtpu", "tokamax")
"""The packages whose versions a badge shows, where they are installed."""


@dataclass(frozen=True)
class Link:
    """A link of the badge: its words, and its address relative to the page."""

    text: str
    address: str


def badge_html(
    page: Page,
    versions: Mapping[str, str],
    past: History,
    *,
    needs: Sequence[Link] = (),
    covers: Sequence[Link] = (),
    actions: Sequence[str] = (),
) -> str:
    """Make the badge of an executed page.

    Args:
        page: its front matter.
        versions: what it was executed with; ``none`` for what is not installed.
        past: the commit.
        needs: links to the pages to read before.
        covers: links to the rows of the coverage page.
        actions: ready-made links, such as the notebook's.
    """
    present = [f"{name} {versions[name]}" for name in SHOWN if versions.get(name, "none") != "none"]
    rungs = "".join(
        f'<span class="pr-rung" data-rung="{rung}">{rung}</span> ' for rung in page.rungs
    )
    first = [
        f'<span class="pr-badge-label">Verified</span> <span>{escape(" · ".join(present))}</span>',
        f"<span>{past_html(past)}</span>",
    ]
    second = [f"<span>{page.minutes} minutes</span>"]
    if needs:
        second.append(f"<span>after {_joined(needs)}</span>")
    if covers:
        second.append(f'<span class="pr-badge-covers">covers {_joined(covers)}</span>')
    if actions:
        second.append(f'<span class="pr-actions">{" ".join(actions)}</span>')
    lines = [" ".join(first), rungs.strip(), " ".join(second)]
    body = "".join(f"<div>{line}</div>" for line in lines if line)
    return (
        f'<div class="pr-badge" role="group" aria-label="How this page was verified">{body}</div>'
    )


def past_html(past: History) -> str:
    """Tell which commit a page was built from."""
    if not past.commit:
        when = f", {in_words(past.day)}" if past.day else ""
        return f"from a copy without history{when}"
    when = f", {in_words(past.day)}" if past.day else ""
    changed = " with local changes" if past.changed else ""
    return f"commit <code>{past.short}</code>{changed}{when}"


def _joined(links: Sequence[Link]) -> str:
    return ", ".join(f'<a href="{escape(link.address)}">{escape(link.text)}</a>' for link in links)


def _actions(app: Sphinx, docname: str) -> list[str]:
    root = "../" * app.builder.get_target_uri(docname).count("/")
    path = escape(root + notebook_path(app, docname))
    found = [f'<a href="{path}" download>{icon("download")} Notebook</a>']
    address = colab_address(app, docname)
    if address:
        found.append(f'<a href="{escape(address)}" rel="noopener">Open in Colab</a>')
    return found


def _coverage_page(app: Sphinx) -> str:
    places: dict[str, set[str]] = getattr(app.env, "pallas_rungs_places", {})
    return next((page for page, names in sorted(places.items()) if "coverage-area" in names), "")


def _badge(app: Sphinx, docname: str) -> str:
    page = pages_of(app)[docname]
    home = _coverage_page(app)
    known = {item.id: item for item in coverage_list().items}
    needs = [
        Link(deferred.title(app, need), app.builder.get_relative_uri(docname, need))
        for need in page.needs
    ]
    covers = [
        Link(item, f"{app.builder.get_relative_uri(docname, home)}#{known[item].anchor}")
        for item in page.covers
        if home
    ]
    versions = dict(executed_notebook(app, docname).metadata["pallas_rungs"]["versions"])
    return badge_html(
        page,
        versions,
        history(Path(app.srcdir)),
        needs=needs,
        covers=covers,
        actions=_actions(app, docname),
    )


def _place(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the badge under the title; on the landing page, after the text."""
    if app.builder.format != "html" or docname not in chapter_docnames(app):
        return
    first = next(iter(doctree.findall(nodes.section)), None)
    if first is None:
        return
    badge = nodes.raw("", _badge(app, docname), format="html")
    proved = next(
        (n for n in first.children if isinstance(n, nodes.section) and "pr-proved" in n["classes"]),
        None,
    )
    if docname == app.config.root_doc and proved is not None:
        first.insert(first.index(proved), badge)
    else:
        first.insert(1, badge)


def setup(app: Sphinx) -> None:
    """Add the badge while pages are written, when every title is known."""
    app.connect("doctree-resolved", _place)
