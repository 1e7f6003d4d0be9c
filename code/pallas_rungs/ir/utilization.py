"""Reading libtpu's utilisation tables: how much of each unit every bundle uses.

The columns are named by the file's header; their names and their number differ between versions of
libtpu, so they are asked for by name and nothing here knows them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pallas_rungs.ir.errors import IRError


@dataclass(frozen=True)
class Utilization:
    """A row for each bundle, a column for each unit.

    Attributes:
      capacity: by the column's name, in the file's order: how much of the unit there is.
      rows: one for each bundle: how much of each unit is busy.
    """

    capacity: dict[str, int]
    rows: tuple[tuple[int, ...], ...]

    def busy(self, unit: str, first: int = 0, last: int | None = None) -> int:
        """How much of a unit is busy, summed over bundles `first` to before `last`.

        Raises:
          KeyError: no column is called so; the message lists them.
        """
        if unit not in self.capacity:
            raise KeyError(f"no column {unit!r}; the columns are {', '.join(self.capacity)}")
        column = list(self.capacity).index(unit)
        return sum(row[column] for row in self.rows[first:last])

    def share(self, unit: str, first: int = 0, last: int | None = None) -> float:
        """`busy` as a part of what those bundles could use; 0 where there are no bundles."""
        busy = self.busy(unit, first, last)
        bundles = len(self.rows[first:last])
        return busy / (bundles * self.capacity[unit]) if bundles else 0.0


def read_utilization(text: str, name: str) -> Utilization:
    """Read a table of utilisation.

    Args:
      text: the file that libtpu wrote.
      name: what to call it in an error.

    Raises:
      IRError: a heading is missing, or a line has not one number for each column.
    """
    lines = text.splitlines()
    _heading(lines, 0, "== CAP", name)
    _heading(lines, 3, "== UTIL", name)
    columns = [column.strip() for column in lines[1].split(",")]
    if not all(column and not column[0].isdigit() for column in columns):
        raise IRError(name, "names of units between commas", repr(lines[1][:80]), 2)
    capacity = _numbers(lines[2], len(columns), name, 3)
    rows = [
        _numbers(line, len(columns), name, number)
        for number, line in enumerate(lines[4:], start=5)
        if line.strip()
    ]
    return Utilization(dict(zip(columns, capacity, strict=True)), tuple(rows))


def _heading(lines: list[str], index: int, begins: str, name: str) -> None:
    found = lines[index] if index < len(lines) else "the end"
    if not found.startswith(begins):
        raise IRError(name, f"a heading that begins with {begins!r}", repr(found[:80]), index + 1)


def _numbers(line: str, count: int, name: str, number: int) -> tuple[int, ...]:
    words = line.split()
    if len(words) != count or not all(word.isdigit() for word in words):
        raise IRError(name, f"{count} numbers", repr(line[:80]), number)
    return tuple(map(int, words))
