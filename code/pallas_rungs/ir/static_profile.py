"""Reading libtpu's static bundle profile: what the code of each HLO instruction could use and does.

It counts code. A bundle in a loop counts once, whatever the number of rounds, and all sides of a
branch count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pallas_rungs.ir.errors import IRError

_LINE = re.compile(r" - (?P<unit>.+): \((?P<used>\d+)/(?P<capacity>\d+)\) - \S+")
_HLO = re.compile(r"HLO: (?P<instruction>.*)")


@dataclass(frozen=True)
class Use:
    """How much of a unit some code uses.

    Attributes:
      used: slots used, in all bundles of the code.
      capacity: slots that those bundles have.
    """

    used: int
    capacity: int

    @property
    def share(self) -> float:
        """Used as a part of the capacity; 0 where there is none."""
        return self.used / self.capacity if self.capacity else 0.0


def read_static_profile(text: str, name: str) -> dict[str, dict[str, Use]]:
    """Read a static bundle profile.

    Args:
      text: the file that libtpu wrote.
      name: what to call it in an error.

    Returns:
      By HLO instruction (`softmax.1`), then by unit. Code that belongs to no instruction is left
      out.

    Raises:
      IRError: a line is neither an instruction nor a unit's use, or there is no instruction.
    """
    found: dict[str, dict[str, Use]] = {}
    uses: dict[str, Use] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if heading := _HLO.fullmatch(line):
            instruction = heading["instruction"].removeprefix("%").partition(" = ")[0].strip()
            uses = {}
            if not instruction.startswith("<"):
                found[instruction] = uses
        elif (match := _LINE.fullmatch(line)) and uses is not None:
            uses[match["unit"]] = Use(int(match["used"]), int(match["capacity"]))
        else:
            raise IRError(
                name, "`HLO: …` or ` - UNIT: (used/capacity) - share`", repr(line), number
            )
    if not found:
        raise IRError(
            name, "a line `HLO: %instruction = …`", f"{text.count(chr(10))} lines without"
        )
    return found
