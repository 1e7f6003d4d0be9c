"""The static picture of the BlockSpec sandbox: the array to scale, its blocks, one program's."""

from __future__ import annotations

from html import escape
from typing import Any

from pallas_rungs.exhibits.blockspec import Setting
from pallas_rungs.exhibits.blockspec_sentence import by_text, tuple_text

WIDTH = 560
HEIGHT = 400
_LEFT, _TOP, _RIGHT, _BOTTOM = 62, 30, 14, 14


def svg(setting: Setting, result: dict[str, Any]) -> str:
    """Draw a two-dimensional setting.

    Args:
      setting: blocked in both dimensions.
      result: what `blockspec.derive` returns for it.

    Returns:
      One `<svg>` element. Its classes take the page's colours; it has `role="img"` and a label.

    Raises:
      ValueError: a setting of another rank.
    """
    if len(setting.dims) != 2:
        raise ValueError(f"the static picture is of two dimensions, got {len(setting.dims)}")
    rows, columns = result["padded"]
    scale = min((WIDTH - _LEFT - _RIGHT) / columns, (HEIGHT - _TOP - _BOTTOM) / rows)
    place = _Place(_LEFT, _TOP, scale)
    array_rows, array_columns = setting.array_shape
    start_row, start_column = result["start"]
    height, width = result["window"]
    lines = "".join(
        [
            *(place.line(0, c, rows, c) for c in range(0, columns + 1, width)),
            *(place.line(r, 0, r, columns) for r in range(0, rows + 1, height)),
        ]
    )
    label = (
        f"An array of {by_text(setting.array_shape)} cut into a grid of {by_text(result['grid'])} "
        f"blocks of {by_text(result['window'])}; the block of program "
        f"{tuple_text(result['program'])} is marked, what lies outside the array is hatched."
    )
    return (
        f'<svg class="pr-bs-picture" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(label)}">'
        '<defs><pattern id="pr-bs-hatch-static" width="7" height="7" '
        'patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path class="pr-bs-hatch" d="M0 0V7"/></pattern></defs>'
        + place.rect("pr-bs-padding", 0, 0, rows, columns, 'fill="url(#pr-bs-hatch-static)"')
        + place.rect("pr-bs-array", 0, 0, array_rows, array_columns)
        + lines
        + place.rect("pr-bs-block", start_row, start_column, height, width)
        + f'<text class="pr-bs-size" x="{_LEFT}" y="{_TOP - 9}">{array_columns}</text>'
        + f'<text class="pr-bs-size" x="{_LEFT - 9}" y="{_TOP + 13}" text-anchor="end">'
        + f"{array_rows}</text>"
        + place.text(
            start_row + height / 2, start_column + width / 2, tuple_text(result["program"])
        )
        + "</svg>"
    )


class _Place:
    """Turns array positions into drawing positions."""

    def __init__(self, left: float, top: float, scale: float) -> None:
        self.left, self.top, self.scale = left, top, scale

    def x(self, column: float) -> str:
        return f"{self.left + column * self.scale:.1f}"

    def y(self, row: float) -> str:
        return f"{self.top + row * self.scale:.1f}"

    def rect(
        self, name: str, row: float, column: float, height: float, width: float, more: str = ""
    ) -> str:
        return (
            f'<rect class="{name}" x="{self.x(column)}" y="{self.y(row)}" '
            f'width="{width * self.scale:.1f}" height="{height * self.scale:.1f}" {more}/>'
        )

    def line(self, row: float, column: float, to_row: float, to_column: float) -> str:
        return (
            f'<path class="pr-bs-grid" d="M{self.x(column)} {self.y(row)}'
            f'L{self.x(to_column)} {self.y(to_row)}"/>'
        )

    def text(self, row: float, column: float, words: str) -> str:
        return (
            f'<text class="pr-bs-program" x="{self.x(column)}" y="{self.y(row)}" '
            f'text-anchor="middle" dominant-baseline="central">{escape(words)}</text>'
        )
