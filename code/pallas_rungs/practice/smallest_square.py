"""Exercise: the smallest square block of a product whose steps are not bound by HBM."""

import math
from collections.abc import Callable

from pallas_rungs.performance.chip_table import listed_chips
from pallas_rungs.performance.roofline import tile_intensity

Side = Callable[[int, int, int], int]

STEP = 128
"""A side is a multiple of this."""

ITEMSIZES = {"bfloat16": 2, "int8": 1}


def starter(rate: int, bandwidth: int, itemsize: int) -> int:
    """Where to begin: the ridge, rounded up to a multiple of 128."""
    del itemsize
    return math.ceil(rate / bandwidth / STEP) * STEP


def solution(rate: int, bandwidth: int, itemsize: int) -> int:
    """A (b, b) block brings 2 b elements for 2 b² operations: b / itemsize of them a byte."""
    return math.ceil(rate / bandwidth * itemsize / STEP) * STEP


def one_operand(rate: int, bandwidth: int, itemsize: int) -> int:
    """Wrong: counts the bytes of one operand."""
    return math.ceil(rate / bandwidth * itemsize / 2 / STEP) * STEP


def products_only(rate: int, bandwidth: int, itemsize: int) -> int:
    """Wrong: takes a product and its sum for one operation."""
    return math.ceil(2 * rate / bandwidth * itemsize / STEP) * STEP


def rounded_down(rate: int, bandwidth: int, itemsize: int) -> int:
    """Wrong: the multiple of 128 below."""
    return max(1, math.floor(rate / bandwidth * itemsize / STEP)) * STEP


WRONG: tuple[tuple[Side, str], ...] = (
    (one_operand, "two operands"),
    (products_only, "two operations"),
    (rounded_down, "below the ridge"),
)


def check(side: Side) -> None:
    """Hold a formula to every chip that the installed jax lists, for bfloat16 and int8.

    Args:
        side: called with operations a second, bytes a second and the bytes of an element; returns
            the side of the smallest square block of the product, a multiple of 128, whose steps
            do as many operations for each byte of the operands as the ridge asks for, or more.

    Raises:
        AssertionError: the number is no multiple of 128, too small or too large for some chip;
            says for which, and a hint.
    """
    for chip in listed_chips():
        for dtype, itemsize in ITEMSIZES.items():
            if dtype in chip.rates:
                _judge(f"{chip.name}, {dtype}", side, chip.rate(dtype), chip.bandwidth, itemsize)


def _judge(case: str, side: Side, rate: int, bandwidth: int, itemsize: int) -> None:
    ridge = rate / bandwidth
    found = side(rate, bandwidth, itemsize)
    if found % STEP or found <= 0:
        raise AssertionError(f"{case}: {found} is no multiple of {STEP}")
    there = tile_intensity(found, found, itemsize)
    if there < ridge:
        hint = (
            "a step brings in blocks of two operands, and elements have bytes"
            if found < solution(rate, bandwidth, itemsize) - STEP or itemsize == 1
            else "this is the multiple of 128 below the ridge; or are there two operands, with "
            "bytes for each element?"
        )
        raise AssertionError(
            f"{case}: blocks of ({found}, {found}) do {there:.1f} operations for each byte, below "
            f"the ridge of {ridge:.1f}\nHint: {hint}"
        )
    less = found - STEP
    if less and tile_intensity(less, less, itemsize) >= ridge:
        raise AssertionError(
            f"{case}: {found} is enough, and so is {less}\n"
            "Hint: a product and its sum are two operations"
        )
