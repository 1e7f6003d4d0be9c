"""What can be found in a program that explains wrong numbers, by the names that rules go by."""

from __future__ import annotations

from dataclasses import dataclass

SWAPPED = "swapped index maps"
WITHOUT_AXIS = "an output map without an axis"
NOT_WRITTEN = "output blocks not written"
PAST_THE_END = "blocks past the end"


@dataclass(frozen=True)
class Finding:
    """Something about the index maps that explains wrong numbers.

    Attributes:
      kind: one of this module's constants.
      told: a sentence, without the full stop.
    """

    kind: str
    told: str
