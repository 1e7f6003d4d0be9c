"""The museum of bugs as the book shows it: climbs, matrix, placards, cures.

`climb_bug` puts a bug on the ladder and `as_recorded` holds it to its verdicts. `matrix` draws all
bugs against the rungs, `placard` and `cure` draw one. `changes` says how verdicts differ from those
that were recorded.
"""

from pallas_rungs.museum.climbs import as_recorded, climb_bug, climb_bugs
from pallas_rungs.museum.cure import cure
from pallas_rungs.museum.matrix import matrix
from pallas_rungs.museum.placard import placard
from pallas_rungs.museum.verdicts import RUNGS, changes, matrix_text, recorded, verdicts

__all__ = [
    "RUNGS",
    "as_recorded",
    "changes",
    "climb_bug",
    "climb_bugs",
    "cure",
    "matrix",
    "matrix_text",
    "placard",
    "recorded",
    "verdicts",
]
