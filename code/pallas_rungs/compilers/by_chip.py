"""The compiler of a chip's machine: libtpu, or the CUDA compiler."""

from __future__ import annotations

from pallas_rungs.compilers import cuda, libtpu
from pallas_rungs.compilers.chips import GPU, Chip, Machine, chip_named
from pallas_rungs.compilers.outcome import CompilerOutcome


def compile_exported(
    serialized: bytes, chip: str | Chip, *, time_limit: float = 120.0, cache: bool = False
) -> CompilerOutcome:
    """Compile an exported program for a chip; see `libtpu` and `cuda`.

    Raises:
      ValueError: no such chip.
    """
    compiles = cuda.compile_exported if chip_named(chip).machine is GPU else libtpu.compile_exported
    return compiles(serialized, chip, time_limit=time_limit, cache=cache)


def warm_up(machine: Machine) -> None:
    """Start the compiler's worker now, without waiting for it, where it is installed."""
    (cuda if machine is GPU else libtpu).warm_up()
