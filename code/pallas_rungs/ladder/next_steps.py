"""What to look at next where numbers are wrong, whether or not a pattern points at a cause."""

from __future__ import annotations

from collections.abc import Mapping

from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict

_SHAPES = (
    "make out_shape and what the function returns like the reference's result; no numbers were "
    "compared"
)
_ARITHMETIC = (
    "work out that block by hand from what its program reads (pl.debug_print shows values in the "
    "body); a case of one block tells arithmetic from index maps. interpret=True moves a slice "
    "that reaches past the end back inside: see whether rung 3 (simulate) names one"
)
_BELOW_TOO = "rung 2 (interpret) is wrong too: begin there, without copies, threads and clocks"
_BELOW_AGREES = (
    "rung 2 (interpret) agrees, so it is not the arithmetic: look for memory that is read before "
    "it is written, copies that are not waited for, and blocks that are written out of turn"
)
_BELOW_UNKNOWN = (
    "climb rung 2 (interpret) as well: where it is wrong too, look at arithmetic and index maps; "
    "where it agrees, at memory, copies and the order of programs"
)


def next_step(verdict: Verdict, before: Mapping[str, Status]) -> str:
    """Return what to look at next; empty for a verdict that is not `wrong`.

    Args:
      verdict: what a rung said.
      before: what was said of the same problem before, by the label of the rung and its target.
    """
    if verdict.status is not Status.WRONG:
        return ""
    if verdict.difference is not None and verdict.difference.mismatch:
        return _SHAPES
    if verdict.rung is not Rung.SIMULATE:
        return _ARITHMETIC
    below = before.get(str(Rung.INTERPRET))
    if below is Status.WRONG:
        return _BELOW_TOO
    return _BELOW_AGREES if below is Status.PASSED else _BELOW_UNKNOWN
