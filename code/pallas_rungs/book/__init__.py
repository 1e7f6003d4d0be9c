"""The Sphinx extension that builds the book: it executes, gathers claims, and guards the pages."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PARTS = (
    "faults",
    "execute",
    "captions",
    "gather",
    "coverage",
    "claims_index",
    "badge",
    "notebook_export",
    "slimming",
    "mathml",
)
"""The modules of this package with a ``setup``, in the order in which they are set up."""

ASSETS = Path(__file__).parent / "assets"
"""Style sheets and other web files; copied into the site's ``_static``."""


def _add_assets(app: Sphinx) -> None:
    app.config.html_static_path.append(str(ASSETS))
    for sheet in sorted(ASSETS.glob("*.css")):
        app.add_css_file(sheet.name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up all parts."""
    for part in PARTS:
        name = f"{__name__}.{part}"
        if find_spec(name) is not None:
            import_module(name).setup(app)
    app.connect("builder-inited", _add_assets)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": False,
        "parallel_write_safe": True,
    }
