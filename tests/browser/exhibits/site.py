"""A two-page site for the browser tests: one page with the exhibit, one without."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

import pallas_rungs.book

THEME = Path(pallas_rungs.book.__file__).parent / "assets" / "theme" / "static"

_CONF = """
project = "Exhibits"
extensions = ["pallas_rungs.book.exhibits"]
html_theme = "basic"
html_static_path = [{theme!r}]
html_css_files = ["pallas-rungs.css"]
html_favicon = {favicon!r}
html_sidebars = {{"**": []}}
"""

_PAGE = """
A page with an exhibit
======================

Words before.

.. exhibit:: blockspec-sandbox

Words after.

.. toctree::

   other
"""

_OTHER = """
A page without
==============

Only words.
"""


def build(folder: Path, builder: str = "html") -> Path:
    """Build the site under `folder` and return its output folder; any warning is an error."""
    source, out = folder / "source", folder / builder
    source.mkdir(parents=True, exist_ok=True)
    (source / "conf.py").write_text(
        _CONF.format(theme=str(THEME), favicon=str(THEME / "favicon.svg"))
    )
    (source / "index.rst").write_text(_PAGE)
    (source / "other.rst").write_text(_OTHER)
    with patch_docutils(source), docutils_namespace():
        app = Sphinx(
            source, source, out, folder / "doctrees", builder, warningiserror=True, status=None
        )
        app.build()
    assert app.statuscode == 0
    return out
