"""The constants of a chip that an estimate needs, each with where it comes from.

Four kinds of sources. *data sheet*: the vendor's published peak. *compiler*: what libtpu itself
assumes, read off its listings or probed in the simulator that it has inside. *fitted*: chosen so
that estimates meet medians that the library tokamax ships for this chip. *assumed*: none of these.
`fitting.py` fits the constants on half of the shapes and holds them against the other half; the
accuracy in `accuracy.py` is that of points which the fit has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from pallas_rungs.compilers.chips import Chip, chip_named


@dataclass(frozen=True)
class Constant:
    """A number and its source.

    Attributes:
      value: the number, in `unit`.
      unit: its unit.
      source: "data sheet", "compiler", "fitted" or "assumed", and on what.
    """

    value: float
    unit: str
    source: str

    @property
    def fitted(self) -> bool:
        """Whether it was fitted on measurements."""
        return self.source.startswith("fitted")

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit} ({self.source})"


@dataclass(frozen=True)
class Clock:
    """What turns cycles and bytes of one chip into time.

    Attributes:
      chip: the chip's name.
      frequency: bundles that a core issues in a second.
      hbm_rate: bytes a second that one program moves to or from HBM, both ways together.
      read_latency: cycles from the end of a transfer out of HBM to its semaphore.
      write_latency: the same for a transfer into HBM.
      on_chip_latency: the same for a transfer between memories of the core.
      granule: bytes of the unit in which DMAs and their semaphores count.
      delay_slots: bundles issued after a branch, taken or not.
      cores: TensorCores over which the compiler splits a program of one device.
      nominal_frequency: at which the data sheet's peak holds.
    """

    chip: str
    frequency: Constant
    hbm_rate: Constant
    read_latency: Constant
    write_latency: Constant
    on_chip_latency: Constant
    granule: Constant
    delay_slots: Constant
    cores: Constant
    nominal_frequency: Constant

    @property
    def hbm_bytes_per_cycle(self) -> float:
        """Bytes that HBM moves in a cycle of the core."""
        return self.hbm_rate.value / self.frequency.value

    def constants(self) -> dict[str, Constant]:
        """All constants by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Constant)}


_SHEET: Final = "data sheet"
_PROBED: Final = "compiler: its own simulator, probed"
_LISTING: Final = "compiler: its listings"
_MEDIANS: Final = "fitted: tokamax's medians"
_NOT_MEASURED: Final = "assumed: no measurement of this chip was at hand"

SIMULATOR: Final = {
    "v5e": (1138, 444),
    "v6e": (552, 460),
    "v5p": (672, 630),
    "tpu7x": (696, 600),
}
"""Cycles from the end of a transfer out of HBM, and of one into HBM, to its semaphore, that the
simulator inside libtpu assumes, by chip."""


def _clock(
    chip: str,
    *,
    nominal: float,
    frequency: tuple[float, str],
    peak: float,
    share: tuple[float, str],
    latency: tuple[int, str] | None = None,
    granule: int,
    delay_slots: int,
    cores: int = 1,
) -> Clock:
    """Write a row of the table: frequencies in GHz, the peak of HBM in GB/s, a latency in cycles.

    Without a latency, those of libtpu's simulator are taken.
    """
    reached, why = share
    if latency is None:
        (read, write), source = SIMULATOR[chip], _PROBED
    else:
        read = write = latency[0]
        source = latency[1]
    return Clock(
        chip,
        frequency=Constant(frequency[0] * 1e9, "Hz", frequency[1]),
        hbm_rate=Constant(
            peak * reached * 1e9, "B/s", f"{peak:g} GB/s, {_SHEET}; {reached:.0%} of it, {why}"
        ),
        read_latency=Constant(read, "cycles", source),
        write_latency=Constant(write, "cycles", source),
        on_chip_latency=Constant(100, "cycles", "assumed: nothing told it, little depends on it"),
        granule=Constant(granule, "bytes", _LISTING),
        delay_slots=Constant(delay_slots, "bundles", _LISTING),
        cores=Constant(cores, "cores", _LISTING),
        nominal_frequency=Constant(nominal * 1e9, "Hz", _SHEET),
    )


CLOCKS: Final = {
    clock.chip: clock
    for clock in (
        _clock(
            "v5e",
            nominal=1.5,
            frequency=(1.5, _MEDIANS),
            peak=819,
            share=(0.88, _MEDIANS),
            granule=32,
            delay_slots=4,
        ),
        _clock(
            "v6e",
            nominal=1.75,
            frequency=(1.7, _MEDIANS),
            peak=1640,
            share=(0.88, _MEDIANS),
            latency=(1530, _MEDIANS),
            granule=32,
            delay_slots=4,
        ),
        _clock(
            "v5p",
            nominal=1.75,
            frequency=(1.75, _MEDIANS),
            peak=2765,
            share=(0.5, f"{_MEDIANS}: one of the two cores' part"),
            granule=32,
            delay_slots=4,
            cores=2,
        ),
        _clock(
            "v4",
            nominal=1.05,
            frequency=(1.05, _SHEET),
            peak=1228,
            share=(0.425, _NOT_MEASURED),
            latency=(600, _NOT_MEASURED),
            granule=512,
            delay_slots=1,
            cores=1,
        ),
        _clock(
            "tpu7x",
            nominal=2.2,
            frequency=(1.85, _MEDIANS),
            peak=3690,
            share=(0.75, _MEDIANS),
            latency=(1665, _MEDIANS),
            granule=32,
            delay_slots=6,
        ),
    )
}
"""The chips that can be estimated."""


def clock_of(chip: str | Chip) -> Clock:
    """Return the constants of a chip.

    Raises:
      ValueError: no such chip, or one whose constants are not known here.
    """
    known = ", ".join(CLOCKS)
    try:
        found = chip_named(chip)
    except ValueError:
        raise ValueError(
            f"unknown chip {chip!r}; the chips that can be estimated are {known}"
        ) from None
    if found.name not in CLOCKS:
        raise ValueError(
            f"no constants are known here to estimate a time on {found.name}; "
            f"the chips that can be estimated are {known}"
        )
    return CLOCKS[found.name]
