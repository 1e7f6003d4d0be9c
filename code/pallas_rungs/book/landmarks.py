"""Regions of a page have names of their own, for readers who go from region to region.

A table that may be scrolled is such a region, named by its headings. Where a page shows two tables
with the same headings, the second is called the second.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_REGION = re.compile(r'(?P<before>role="region" tabindex="0" aria-label=")(?P<label>[^"]*)"')


def distinct(body: str) -> str:
    """Return a page's HTML with a number behind the name of each region that has another's name."""
    seen: Counter[str] = Counter()

    def numbered(match: re.Match[str]) -> str:
        seen[match["label"]] += 1
        number = seen[match["label"]]
        again = f", table {number} of these" if number > 1 else ""
        return f'{match["before"]}{match["label"]}{again}"'

    return _REGION.sub(numbered, body)


def _name_regions(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if body := context.get("body"):
        context["body"] = distinct(body)


def setup(app: Sphinx) -> None:
    """Number the names of regions before a page is written."""
    app.connect("html-page-context", _name_regions, priority=900)
