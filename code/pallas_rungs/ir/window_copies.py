"""The windows that XLA's own programs copy, as the compiler remarks beside each copy.

A program of XLA's walks over a grid as a Pallas pipeline does, and beside the instruction that
starts a copy libtpu remarks which window of which array it is for. So a listing of bundles says how
often an array is to be moved before anything is executed or estimated.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from pallas_rungs.ir.bundles import Instruction, Listing
from pallas_rungs.ir.errors import IRError

_REMARKED: Final = ("base_bounds", "window_bounds", "iteration_bounds")
_BOUNDS: Final = re.compile(r"\b(\w+): \(([\d, ]*)\)")
_ELEMENT: Final = re.compile(r"\belement_size_in_bytes: (\d+)")
_BELOW: Final = re.compile(r"scmp\.lt\.s32\.totalorder %\S+, (\d+)")


@dataclass(frozen=True)
class WindowCopy:
    """A copy of one window of an array, which a program starts in its loop.

    Attributes:
      opcode: `dma.hbm_to_vmem`, `dma.vmem_to_hbm`.
      array: the array's extents in elements; an element of an array in HBM is a tile, not a number.
      window: the window's, likewise.
      steps: the bounds of the grid, the slowest axis first.
      element_bytes: bytes of an element, 4096 for a tile of 8 by 128 numbers of 32 bits.
      condition: the instruction that decides whether the copy is started; empty where it always is,
        `%p:` and the predicate where several instructions make it.
    """

    opcode: str
    array: tuple[int, ...]
    window: tuple[int, ...]
    steps: tuple[int, ...]
    element_bytes: int
    condition: str

    @property
    def window_bytes(self) -> int:
        """Bytes that one copy moves."""
        return math.prod(self.window) * self.element_bytes

    @property
    def moved_bytes(self) -> int:
        """Bytes moved if each step of the grid copies; a window over the edge counts as whole."""
        return math.prod(self.steps) * self.window_bytes

    @property
    def at_each_step(self) -> bool:
        """Whether nothing but the end of the grid keeps a step from copying."""
        below = _BELOW.search(self.condition)
        return not self.condition or bool(below and int(below[1]) == math.prod(self.steps))


def window_copies(listing: Listing, name: str) -> tuple[WindowCopy, ...]:
    """Return the copies of a listing that the compiler remarks windows on, in their order.

    Args:
      listing: `packed-bundles-post-ra` of a program of XLA's own.
      name: what to call it in an error.

    Raises:
      IRError: a remark names a window and not the array, the grid or the size of an element.
    """
    made: dict[str, list[Instruction]] = {}
    for it in listing.instructions():
        for result in it.results:
            made.setdefault(result, []).append(it)
    found = []
    for bundle in listing.bundles:
        for it in bundle.instructions:
            bounds = {
                key: tuple(int(number) for number in numbers.split(","))
                for key, numbers in _BOUNDS.findall(it.comment)
                if numbers
            }
            if it.stem != "dma" or "window_bounds" not in bounds:
                continue
            element = _ELEMENT.search(it.comment)
            missing = [key for key in _REMARKED if key not in bounds]
            missing += [] if element else ["element_size_in_bytes"]
            if missing or element is None:
                raise IRError(
                    name, f"{missing[0]} in the remark on {it.opcode}", "none", bundle.line
                )
            array, window, steps = (bounds[key] for key in _REMARKED)
            condition = _condition(it.predicate, made)
            found.append(WindowCopy(it.opcode, array, window, steps, int(element[1]), condition))
    return tuple(found)


def _condition(predicate: str, made: dict[str, list[Instruction]]) -> str:
    makers = made.get(predicate, [])
    if len(makers) == 1 and not makers[0].predicate:
        return f"{makers[0].opcode}{makers[0].operands}"
    return f"%p: {predicate}" if predicate else ""
