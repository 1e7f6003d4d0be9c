"""The `exhibit` directive: an interactive exhibit in a chapter.

    ```{exhibit} blockspec-sandbox
    An optional caption in Markdown-free words.
    ```

In HTML the page gets a custom element that holds a sentence, a picture and the exhibit's data;
the script that brings it to life is loaded by pages with an exhibit and by no other. Readers
without scripts and other formats get the sentence and the picture.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from pallas_rungs import exhibits
from pallas_rungs.exhibits import exhibit_named
from pallas_rungs.exhibits.bundle import MANIFEST, SCRIPT, Bundle, BundleError, bundle
from pallas_rungs.exhibits.exhibit import Exhibit

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

logger = logging.getLogger(__name__)

_ASSETS = Path(exhibits.__file__).parent / "assets"
STYLE = "pr-exhibits.css"


class exhibit_node(nodes.General, nodes.Element):  # noqa: N801
    """An exhibit; `html` holds its markup, `sentence` what it says without a picture."""


class ExhibitDirective(SphinxDirective):
    """Put the exhibit of that name here."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the exhibit's node."""
        name = self.arguments[0].strip()
        place = f"{self.env.doc2path(self.env.docname, base=False)}:{self.lineno}"
        used = self.env.temp_data.setdefault("pr_exhibits", set())
        if name in used:
            raise ExtensionError(
                f"{place}: exhibit {name!r} is already on this page", modname=__name__
            )
        used.add(name)
        try:
            found = exhibit_named(name)
        except ValueError as error:
            raise ExtensionError(f"{place}: {error}", modname=__name__) from None
        sentence, _ = found.fallback()
        markup = exhibit_html(found, caption=" ".join(self.content))
        return [exhibit_node("", html=markup, sentence=sentence)]


def exhibit_html(exhibit: Exhibit, *, caption: str = "") -> str:
    """Return the element with its static fallback and its data.

    Args:
      exhibit: the exhibit.
      caption: plain words for below it; its title when empty.
    """
    sentence, picture = exhibit.fallback()
    page = json.dumps(
        {"setting": exhibit.default, "data": exhibit.data()}, separators=(",", ":"), sort_keys=True
    ).replace("<", "\\u003c")
    name = exhibit.name
    return (
        f'<figure class="pr-exhibit" aria-label="{escape(exhibit.title)}">'
        f'<{name} id="{name}">{picture}<p class="pr-exhibit-sentence">{escape(sentence)}</p>'
        f'<script type="application/json" class="pr-exhibit-data">{page}</script></{name}>'
        f'<figcaption class="pr-exhibit-caption">{escape(caption or exhibit.title)}</figcaption>'
        "</figure>\n"
    )


def _visit_html(translator: Any, node: exhibit_node) -> None:
    translator.body.append(node["html"])
    raise nodes.SkipNode


def _visit_words(translator: Any, node: exhibit_node) -> None:
    paragraph = nodes.paragraph("", node["sentence"])
    paragraph.walkabout(translator)
    raise nodes.SkipNode


def _bundle(app: Sphinx) -> None:
    """Make the script and say what came of it; a build without Node goes on without."""
    app.config.html_static_path.append(str(_ASSETS / STYLE))
    try:
        made = bundle()
    except BundleError as error:
        raise ExtensionError(str(error), modname=__name__) from None
    logger.info(made.message)
    app.pr_exhibits = made  # type: ignore[attr-defined]
    if made.folder:
        app.config.html_static_path += [str(made.folder / SCRIPT), str(made.folder / MANIFEST)]


def _add_files(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if doctree is None or next(doctree.findall(exhibit_node), None) is None:
        return
    app.add_css_file(STYLE)
    made: Bundle = app.pr_exhibits  # type: ignore[attr-defined]
    if made.folder:
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive, its node and what its pages load."""
    words = (_visit_words, None)
    app.add_node(
        exhibit_node,
        html=(_visit_html, None),
        latex=words,
        text=words,
        man=words,
        texinfo=words,
    )
    app.add_directive("exhibit", ExhibitDirective)
    app.connect("builder-inited", _bundle)
    app.connect("html-page-context", _add_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
