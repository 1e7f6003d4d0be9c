"""What the book must teach: the list that coverage is counted against."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("coverage.json")


@dataclass(frozen=True)
class Item:
    """One thing the book must teach.

    Attributes:
        id: Such as ``M-01``.
        area: The letter of its area.
        text: The fact, in a line; `backticks` mark code.
        prose: True when no executed cell has to prove it.
    """

    id: str
    area: str
    text: str
    prose: bool = False

    @property
    def anchor(self) -> str:
        """The HTML id of its row on the coverage page."""
        return f"covers-{self.id.lower()}"


@dataclass(frozen=True)
class CoverageList:
    """All items, by area.

    Attributes:
        areas: Letter of an area and its title, in the order of the book.
        items: The items, in the order of the areas.
    """

    areas: dict[str, str]
    items: tuple[Item, ...]

    def of(self, area: str) -> tuple[Item, ...]:
        """Return the items of one area."""
        return tuple(item for item in self.items if item.area == area)


@functools.cache
def coverage_list() -> CoverageList:
    """Read the list that is kept beside this module."""
    data = json.loads(LIST.read_text("utf8"))
    return CoverageList(
        areas={area["id"]: area["title"] for area in data["areas"]},
        items=tuple(Item(**item) for item in data["items"]),
    )
