"""Excerpts drawn from installed upstream sources, with notes, and the account of a whole file."""

from pallas_rungs.walk.coverage import FileAccount, Fold, Skip, whole_file
from pallas_rungs.walk.errors import AbsentExtraError, ExcerptError
from pallas_rungs.walk.excerpt import Excerpt, Note, excerpt
from pallas_rungs.walk.installed import InstalledModule, installed_module
from pallas_rungs.walk.located import Passage

__all__ = [
    "AbsentExtraError",
    "Excerpt",
    "ExcerptError",
    "FileAccount",
    "Fold",
    "InstalledModule",
    "Note",
    "Passage",
    "Skip",
    "excerpt",
    "installed_module",
    "whole_file",
]
