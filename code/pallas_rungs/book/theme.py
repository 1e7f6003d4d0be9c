"""The book's own Sphinx theme: templates, icons, and what each page is allowed to load.

Stock pages of the usual themes weigh hundreds of kilobytes, most of it icon fonts and styles
that no page uses. This theme is one stylesheet, two small scripts and four font files; what
other extensions add is loaded by the pages that need it and by no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from markupsafe import Markup

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NAME = "pallas_rungs"
FOLDER = Path(__file__).parent / "assets" / "theme"

_NEVER: Callable[[str], bool] = lambda body: False  # noqa: E731
STOCK_ASSETS: dict[str, Callable[[str], bool]] = {
    "basic.css": _NEVER,
    "pygments.css": _NEVER,
    "mystnb": _NEVER,
    "copybutton": _NEVER,
    "clipboard": _NEVER,
    "togglebutton": _NEVER,
    "documentation_options.js": _NEVER,
    "doctools.js": _NEVER,
    "sphinx_highlight.js": _NEVER,
    "thebe": _NEVER,
    "sphinx-thebe": _NEVER,
    "sphinx-design.min": lambda body: 'class="sd-' in body,
    "pr-excerpt.css": lambda body: "pr-excerpt" in body,
    "design-tabs.js": lambda body: "sd-tab-set" in body,
}
"""Files that Sphinx and its extensions add to every page, and when a page may have them."""

_ICONS = {
    "menu": '<path d="M3 6h18M3 12h18M3 18h18"/>',
    "close": '<path d="M5 5l14 14M19 5L5 19"/>',
    "search": '<circle cx="10.5" cy="10.5" r="6.5"/><path d="M15.5 15.5L21 21"/>',
    "left": '<path d="M19 12H5M11 6l-6 6 6 6"/>',
    "right": '<path d="M5 12h14M13 6l6 6-6 6"/>',
    "ladder": '<path d="M7 3v18M17 3v18M7 7.5h10M7 12h10M7 16.5h10"/>',
    "source": '<path d="M8 7l-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14"/>',
    "mode": '<circle cx="12" cy="12" r="8.5"/>'
    '<path class="pr-mode-half" d="M12 3.5a8.5 8.5 0 0 1 0 17z" fill="currentColor"/>',
    "download": '<path d="M12 3v12M6.5 10.5L12 16l5.5-5.5M4 20.5h16"/>',
}


def icon(name: str) -> Markup:
    """Draw one icon as inline SVG in the text's colour, hidden from screen readers."""
    return Markup(
        '<svg class="pr-icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" '
        'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" '
        f'stroke-linejoin="round">{_ICONS[name]}</svg>'
    )


def is_needed(filename: str, body: str) -> bool:
    """Tell whether a page with this body needs an asset; unknown assets are always needed."""
    name = filename.rsplit("/", 1)[-1]
    for prefix, needed in STOCK_ASSETS.items():
        if name.startswith(prefix):
            return needed(body)
    return True


def page_contents(toc: str) -> str:
    """Strip the page's own title from the list of its sections; empty when nothing is left."""
    match = re.match(r"\s*<ul>\s*<li>.*?</a>\s*(<ul>.*</ul>)\s*</li>\s*</ul>\s*$", toc, re.S)
    if match and match.group(1).count("<ul>") == match.group(1).count("</ul>"):
        return match.group(1)
    return ""


def wrap_wide_tables(body: str) -> str:
    """Put each table into a box that scrolls sideways, so that the page itself never does."""
    return re.sub(
        r"<table\b[^>]*\bdocutils\b[^>]*>.*?</table>",
        lambda match: f'<div class="pr-wide">{match.group(0)}</div>',
        body,
        flags=re.S,
    )


def describe(doctree: nodes.document | None, limit: int = 160) -> str:
    """Take a page's description from its first paragraph of prose, cut at a word."""
    if doctree is None:
        return ""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            text = " ".join(paragraph.astext().split())
            return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + "…"
    return ""


def _page_context(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    body = context.get("body", "")
    context["body"] = wrap_wide_tables(body)
    context["pr_icon"] = icon
    context["pr_toc"] = page_contents(context.get("toc", ""))
    context["pr_description"] = describe(doctree)
    for kind in ("css_files", "script_files"):
        files = context[kind]
        files[:] = [
            item
            for item in files
            if getattr(item, "filename", None) and is_needed(str(item.filename), body)
        ]


def _drop_unused(app: Sphinx, exception: Exception | None) -> None:
    """Remove the stock files that no page loads."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    kept = {"documentation_options.js", "doctools.js"}  # the search page asks for these
    for name in ("file.png", "minus.png", "plus.png"):
        (static / name).unlink(missing_ok=True)
    for path in list(static.glob("*.css")) + list(static.glob("*.js")):
        stock = any(
            path.name.startswith(prefix) and needed is _NEVER
            for prefix, needed in STOCK_ASSETS.items()
        )
        if stock and path.name not in kept:
            path.unlink()


def setup(app: Sphinx) -> None:
    """Register the theme and the hooks that keep its pages light."""
    app.add_html_theme(NAME, str(FOLDER))
    app.add_js_file("pallas-rungs.js", loading_method="defer", priority=600)
    app.connect("html-page-context", _page_context, priority=950)
    app.connect("build-finished", _drop_unused, priority=950)
