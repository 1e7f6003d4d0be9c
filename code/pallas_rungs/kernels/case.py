"""One worked input for a kernel, with the error that its result may have."""

from dataclasses import dataclass
from typing import Any

BFLOAT16_RTOL = 2.0**-8
"""Largest relative error of rounding a number to bfloat16, which keeps eight significant bits."""


@dataclass(frozen=True)
class Case:
    """Arguments to try a kernel on, and how far the result may be from its float64 reference.

    A result ``got`` agrees with the reference ``want`` where
    ``abs(got - want) <= atol + rtol * abs(want)``.

    Attributes:
        name: Short name, unique among the cases of one kernel.
        args: Positional arguments, the same for the kernel and for its reference.
        rtol: Relative tolerance, a plain number.
        atol: Absolute tolerance, in the units of the result.
        note: What the case is there to show; empty where the name says it.
    """

    name: str
    args: tuple[Any, ...]
    rtol: float = 1e-6
    atol: float = 1e-6
    note: str = ""
