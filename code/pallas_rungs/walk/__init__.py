"""Excerpts drawn from installed upstream sources, with notes."""

from pallas_rungs.walk.errors import ExcerptError
from pallas_rungs.walk.excerpt import Excerpt, Note, excerpt
from pallas_rungs.walk.installed import InstalledModule, installed_module

__all__ = [
    "Excerpt",
    "ExcerptError",
    "InstalledModule",
    "Note",
    "excerpt",
    "installed_module",
]
