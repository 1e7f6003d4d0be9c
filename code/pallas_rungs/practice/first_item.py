"""Exercise: from the figures of an estimate, what to look at first in a slow kernel."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Symptoms:
    """What an estimate says of a kernel, as parts.

    Attributes:
        around: the other programs' part of the whole time.
        moved: bytes moved to and from HBM, as a multiple of operands and results.
        hbm: the part of HBM's rate that is used while the kernel runs.
        waiting: the part of its cycles in which the kernel waits.
        spilling: the part of its cycles in which spilled registers are stored.
    """

    around: float
    moved: float
    hbm: float
    waiting: float
    spilling: float


First = Callable[[Symptoms], str]

NAMES = ("around", "bytes", "waits", "spills", "nothing")


def starter(it: Symptoms) -> str:
    """Where to begin: what looks worst."""
    if it.spilling > 0.1:
        return "spills"
    if it.waiting > 0.25:
        return "waits"
    return "nothing"


def solution(it: Symptoms) -> str:
    """What hides the rest comes first; a busy HBM with no byte too many has no fault."""
    if it.around > 0.1:
        return "around"
    if it.hbm > 0.9:
        return "bytes" if it.moved > 1.1 else "nothing"
    if it.waiting > 0.25:
        return "waits"
    return "spills" if it.spilling > 0.1 else "nothing"


def busy_is_done(it: Symptoms) -> str:
    """Wrong: whoever uses HBM all the time is done, whatever it moves."""
    return "nothing" if it.hbm > 0.9 else solution(it)


def bytes_at_any_rate(it: Symptoms) -> str:
    """Wrong: bytes too many, in a kernel that HBM does not hold up."""
    if it.around <= 0.1 and it.moved > 1.1:
        return "bytes"
    return solution(it)


def waits_of_any_kind(it: Symptoms) -> str:
    """Wrong: waiting for bytes that must come is taken for a fault."""
    if it.around <= 0.1 and it.waiting > 0.25:
        return "waits"
    return solution(it)


def the_kernel_alone(it: Symptoms) -> str:
    """Wrong: a kernel without a fault, between two programs that take as long as it does."""
    return solution(Symptoms(0.0, it.moved, it.hbm, it.waiting, it.spilling))


def spills_first(it: Symptoms) -> str:
    """Wrong: spills count, even where they are hidden behind bytes that must come."""
    if it.around <= 0.1 and it.spilling > 0.1:
        return "spills"
    return solution(it)


WRONG: tuple[tuple[First, str], ...] = (
    (busy_is_done, "more bytes than operands and results"),
    (bytes_at_any_rate, "HBM is not what holds it up"),
    (waits_of_any_kind, "nobody can wait less"),
    (the_kernel_alone, "half of the time"),
    (spills_first, "costs nothing while HBM is busy"),
)

_KERNELS: tuple[tuple[str, Symptoms, str, str], ...] = (
    (
        "a doubling in large blocks",
        Symptoms(0.0, 1.0, 0.99, 0.93, 0.0),
        "nothing",
        "every byte is moved once, and HBM is busy all the time: nobody can wait less",
    ),
    (
        "a softmax with many spills",
        Symptoms(0.0, 1.0, 0.99, 0.85, 0.12),
        "nothing",
        "a spill costs nothing while HBM is busy with bytes that must be moved",
    ),
    (
        "a product that reads an operand again for each block",
        Symptoms(0.0, 4.4, 0.98, 0.54, 0.02),
        "bytes",
        "HBM is busy, with more bytes than operands and results have",
    ),
    (
        "a product that reads more than it must and is busy with products",
        Symptoms(0.0, 1.5, 0.45, 0.08, 0.01),
        "nothing",
        "there are bytes too many, but HBM is not what holds it up",
    ),
    (
        "a doubling in small blocks",
        Symptoms(0.0, 1.0, 0.21, 0.89, 0.0),
        "waits",
        "it waits while HBM is idle: its blocks are too small, or its steps too few",
    ),
    (
        "a doubling of padded rows",
        Symptoms(0.5, 1.0, 0.99, 0.93, 0.0),
        "around",
        "half of the time is spent in programs around the kernel",
    ),
    (
        "a long chain of arithmetic on many rows",
        Symptoms(0.0, 1.0, 0.30, 0.09, 0.74),
        "spills",
        "it hardly waits, and its stores are those of spilled registers",
    ),
    (
        "a chain in strips",
        Symptoms(0.0, 1.0, 0.31, 0.09, 0.0),
        "nothing",
        "it neither waits nor spills: its units do what they must",
    ),
)


def check(first: First) -> None:
    """Ask a function about eight kernels.

    Args:
        first: called with a kernel's symptoms; returns one of `NAMES`.

    Raises:
        AssertionError: it returns something else, or looks in the wrong place first; holds the
            kernel, its symptoms and a hint.
    """
    for kernel, symptoms, right, hint in _KERNELS:
        said = first(symptoms)
        if said not in NAMES:
            raise AssertionError(
                f"{kernel}: {said!r} is none of {', '.join(NAMES)}\nHint: return one of these names"
            )
        if said != right:
            raise AssertionError(f"{kernel}, {symptoms}: not {said!r}\nHint: {hint}")
