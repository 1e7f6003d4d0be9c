"""The `exhibit` directive: an interactive exhibit in a chapter.

    ```{exhibit} blockspec-sandbox
    An optional caption in Markdown-free words.
    ```

In HTML the page gets a custom element that holds a sentence, a picture and the exhibit's data;
the script that brings it to life is loaded by pages with an exhibit and by no other. Readers
without scripts and other formats get the sentence and the picture.
"""

from __future__ import annotations

import hashlib
import json
import os
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from pallas_rungs import exhibits
from pallas_rungs.exhibits import exhibit_named
from pallas_rungs.exhibits.bundle import MANIFEST, SCRIPT, BundleError, bundle
from pallas_rungs.exhibits.exhibit import Exhibit

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.util.typing import ExtensionMetadata

logger = logging.getLogger(__name__)

_PACKAGE = Path(exhibits.__file__).parent
_ASSETS = _PACKAGE / "assets"
STYLE = "pr-exhibits.css"


def _jax_version() -> Path:
    """Return the file that changes with the installed jax, without importing jax."""
    found = find_spec("jax")
    if found is None or found.origin is None:
        raise ExtensionError("jax is not installed", modname=__name__)
    return Path(found.origin).with_name("version.py")


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
            raise ExtensionError(f"{place}: {name!r} is already on this page", modname=__name__)
        used.add(name)
        try:
            found = exhibit_named(name)
        except ValueError as error:
            raise ExtensionError(f"{place}: {error}", modname=__name__) from None
        for source in (*_PACKAGE.glob("*.py"), _jax_version()):
            self.env.note_dependency(str(source))
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
        f'<figure class="pr-exhibit{{live}}" aria-label="{escape(exhibit.title)}">'
        f'<{name} id="{name}">{picture}<p class="pr-exhibit-sentence">{escape(sentence)}</p>'
        f'<script type="application/json" class="pr-exhibit-data">{page}</script></{name}>'
        f'<figcaption class="pr-exhibit-caption">{escape(caption or exhibit.title)}</figcaption>'
        "</figure>\n"
    )


def _visit_html(translator: Any, node: exhibit_node) -> None:
    live = translator.config.pr_exhibits_script
    translator.body.append(node["html"].replace("{live}", " pr-ex-live" if live else "", 1))
    raise nodes.SkipNode


def _in_words(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Leave other formats than HTML the sentence alone."""
    if app.builder.format != "html":
        for node in list(doctree.findall(exhibit_node)):
            node.replace_self(nodes.paragraph("", node["sentence"]))


def _bundle(app: Sphinx, config: Config) -> None:
    """Make the script and say what came of it; a build without Node goes on without."""
    config.html_static_path.append(str(_ASSETS / STYLE))
    try:
        made = bundle()
    except BundleError as error:
        raise ExtensionError(str(error), modname=__name__) from None
    logger.info(made.message)
    if made.folder:
        script = made.folder / SCRIPT
        config.html_static_path += [str(script), str(made.folder / MANIFEST)]
        config.pr_exhibits_script = hashlib.sha256(script.read_bytes()).hexdigest()


def _add_files(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if doctree is None or next(doctree.findall(exhibit_node), None) is None:
        return
    app.add_css_file(STYLE)
    if app.config.pr_exhibits_script:
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive, its node and what its pages load."""
    # The exhibits' arithmetic runs in this process; it wants no accelerator.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    app.add_config_value("pr_exhibits_script", "", "html", str)
    app.add_node(exhibit_node, html=(_visit_html, None))
    app.add_directive("exhibit", ExhibitDirective)
    app.connect("config-inited", _bundle)
    app.connect("doctree-resolved", _in_words)
    app.connect("html-page-context", _add_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
