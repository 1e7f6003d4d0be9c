"""The Sphinx extension that builds the book: it executes, gathers claims, and guards the pages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PARTS = (
    "faults",
    "execute",
    "captions",
    "gather",
    "figures_check",
    "excerpts",
    "exhibits",
    "landmarks",
    "theme",
    "coverage",
    "claims_index",
    "badge",
    "notebook_export",
    "slimming",
    "mathml",
)
"""The modules of this package with a ``setup``, in the order in which they are set up."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up all parts."""
    for part in PARTS:
        import_module(f"{__name__}.{part}").setup(app)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": False,
        "parallel_write_safe": True,
    }
