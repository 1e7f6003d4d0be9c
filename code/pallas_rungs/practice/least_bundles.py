"""Exercise: say how many bundles the matrix units alone ask of one step of a product."""

from collections.abc import Callable
from dataclasses import dataclass

Block = tuple[int, int, int]


@dataclass(frozen=True)
class MatrixUnits:
    """What the listings of a chip tell of its matrix units, for bfloat16.

    Attributes:
        count: how many of them a bundle can use.
        side: rows and columns of the right operand that one of them holds.
        held: bundles for which a product of one register of rows holds its unit.
    """

    count: int
    side: int
    held: int


UNITS = {"v5e": MatrixUnits(4, 128, 16), "v6e": MatrixUnits(2, 256, 8)}

ROWS = 16
"""Of bfloat16 in a register."""

Bound = Callable[[Block, MatrixUnits], int]

SEEN: dict[tuple[str, Block], int] = {
    ("v5e", (256, 256, 256)): 256,
    ("v5e", (256, 512, 256)): 512,
    ("v5e", (512, 512, 512)): 2048,
    ("v6e", (256, 256, 256)): 64,
    ("v6e", (256, 512, 256)): 128,
    ("v6e", (512, 128, 512)): 256,
    ("v6e", (512, 512, 512)): 512,
}
"""(chip, block) -> bundles for which a unit is busy in a step, by libtpu 0.0.50.1's own table."""


def starter(block: Block, units: MatrixUnits) -> int:
    """Where to begin: the products of a step, each held as long as the listing says."""
    bm, bk, bn = block
    return bm // ROWS * (bk // 128) * (bn // 128) * units.held


def solution(block: Block, units: MatrixUnits) -> int:
    """Products by the unit's own tile, begun tiles counted whole, shared among the units."""
    bm, bk, bn = block
    tiles = -(-bk // units.side) * -(-bn // units.side)
    return bm // ROWS * tiles * units.held // units.count


def tiles_of_128(block: Block, units: MatrixUnits) -> int:
    """Wrong: counts tiles of 128 on a chip whose units hold 256."""
    bm, bk, bn = block
    return bm // ROWS * (bk // 128) * (bn // 128) * units.held // units.count


def begun_tiles_dropped(block: Block, units: MatrixUnits) -> int:
    """Wrong: half a tile is no work."""
    bm, bk, bn = block
    return bm // ROWS * (bk // units.side) * (bn // units.side) * units.held // units.count


def one_bundle_each(block: Block, units: MatrixUnits) -> int:
    """Wrong: takes a product for an instruction of one bundle."""
    bm, bk, bn = block
    tiles = -(-bk // units.side) * -(-bn // units.side)
    return bm // ROWS * tiles // units.count


WRONG: tuple[tuple[Bound, str], ...] = (
    (tiles_of_128, "a unit of this chip holds 256"),
    (begun_tiles_dropped, "begun"),
    (one_bundle_each, "more than one bundle"),
)


def check(least_bundles: Bound) -> None:
    """Compare with what the compiler's table of utilisation says, for two chips.

    Args:
        least_bundles: called with a block (bm, bk, bn) of a bfloat16 product and the matrix units
            of a chip; returns the bundles for which each unit is busy in one step.

    Raises:
        AssertionError: a number is not the table's; holds both and a hint.
    """
    for (chip, block), wanted in SEEN.items():
        got = least_bundles(block, UNITS[chip])
        if got != wanted:
            raise AssertionError(
                f"{block} on {chip}: {got}, and the table has its units busy for {wanted} bundles "
                f"each. Hint: {_hint(got, wanted, UNITS[chip])}"
            )


def _hint(got: int, wanted: int, units: MatrixUnits) -> str:
    if got == wanted * units.count:
        return f"{units.count} units work side by side"
    if got * units.held == wanted:
        return "a product holds its unit for more than one bundle"
    if got < wanted:
        return "a tile that is begun takes as long as a whole one"
    return f"a unit of this chip holds {units.side} by {units.side}, not 128 by 128"
