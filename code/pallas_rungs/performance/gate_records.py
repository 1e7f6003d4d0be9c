"""What came of the gates: the record of the estimates of both sides; measurements: `measured`.

Each entry knows the hash of the code that it was made of. Once that code has changed the entry is
void: whoever reads the record is told so, by name, and gets no figure of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pallas_rungs.performance.bench import Measurement
from pallas_rungs.performance.clock import CLOCKS
from pallas_rungs.performance.estimate import Estimate, estimate
from pallas_rungs.performance.gates import GATES, MORE_BYTES, Gate, Rival
from pallas_rungs.performance.provenance import Quantity, Ratio, quantity, ratio
from pallas_rungs.performance.sealed import FOLDER, RecordError, read_sealed, write_sealed
from pallas_rungs.performance.validation import constants_of

RECORD: Final = FOLDER / "gates.json"
"""Estimates of both sides, written by `make gates`."""

QUEUED: Final = "queued"
_KIND: Final = "estimates of the gates"


@dataclass(frozen=True)
class Side:
    """One program of a gate.

    Attributes:
      name: "kernel", or the rival's name.
      time: its estimate.
      hbm_bytes: read and written, by the estimate.
      unresolved: what the estimate had to guess.
    """

    name: str
    time: Quantity
    hbm_bytes: int
    unresolved: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """Hash of what it was made of."""
        return self.time.provenance.code or ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "name": self.name,
            "hbm_bytes": self.hbm_bytes,
            "unresolved": list(self.unresolved),
            **self.time.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Side:
        """Read what `to_json` gave.

        Raises:
          ProvenanceError: the figure has no provenance, or one that lacks something.
        """
        return cls(
            data["name"], Quantity.from_json(data), data["hbm_bytes"], tuple(data["unresolved"])
        )


@dataclass(frozen=True)
class Entry:
    """Both sides of a gate on one chip, estimated in one run.

    Attributes:
      gate: the gate's name.
      chip: the chip's name.
      kernel: our side.
      rivals: the others, in the gate's order.
      constants: the chip's constants that both were estimated with.
    """

    gate: str
    chip: str
    kernel: Side
    rivals: tuple[Side, ...]
    constants: Mapping[str, float]

    def ratios(self) -> dict[str, Ratio]:
        """Return the kernel's time as a part of each rival's, by the rival's name."""
        return {rival.name: ratio(self.kernel.time, rival.time) for rival in self.rivals}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "gate": self.gate,
            "chip": self.chip,
            "constants": dict(self.constants),
            "kernel": self.kernel.to_json(),
            "rivals": [rival.to_json() for rival in self.rivals],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Read what `to_json` gave.

        Raises:
          ProvenanceError: a figure has no provenance, or one that lacks something.
        """
        return cls(
            data["gate"],
            data["chip"],
            Side.from_json(data["kernel"]),
            tuple(Side.from_json(rival) for rival in data["rivals"]),
            data["constants"],
        )


def estimated(gate: Gate, chip: str) -> Entry:
    """Estimate both sides of a gate on a chip, now.

    Raises:
      KeyError: the gate is not for that chip.
      EstimateError: a side cannot be estimated.
    """
    day = datetime.now(UTC).date().isoformat()

    def side(name: str, made: Estimate, code: str) -> Side:
        return Side(name, quantity(made, date=day, code=code), made.hbm_bytes, made.unresolved)

    ours = estimate(gate.call(chip), *gate.arguments, chip=chip)
    theirs = [estimate(rival.call, *gate.arguments, chip=chip) for rival in gate.rivals]
    return Entry(
        gate.name,
        chip,
        side("kernel", ours, gate.code(chip)),
        tuple(
            side(rival.name, made, gate.code(chip, rival))
            for rival, made in zip(gate.rivals, theirs, strict=True)
        ),
        constants_of(chip),
    )


def why_void(gate: Gate, entry: Entry) -> str:
    """Say why an entry is void; empty where it holds.

    Args:
      gate: the gate as it is now.
      entry: what was recorded of it.
    """
    if entry.chip not in gate.chips:
        return "the gate is for that chip no longer"
    if entry.kernel.code != gate.code(entry.chip):
        made = entry.kernel.time.provenance.date
        return f"the kernel `{gate.kernel.__name__}` or its configuration has changed since {made}"
    if tuple(side.name for side in entry.rivals) != tuple(rival.name for rival in gate.rivals):
        return "it is compared with others now"
    for side, rival in zip(entry.rivals, gate.rivals, strict=True):
        if side.code != gate.code(entry.chip, rival):
            return f"the rival {side.name} is written otherwise now"
    if dict(entry.constants) != constants_of(entry.chip):
        return f"the constants of {entry.chip} are others now"
    return ""


def read_entries(
    path: Path = RECORD, *, gates: Iterable[Gate] = GATES, only_valid: bool = False
) -> dict[tuple[str, str], Entry]:
    """Read the record of the gates.

    Args:
      path: the file.
      gates: the gates as they are now.
      only_valid: leave void entries out, in place of refusing the record for them.

    Returns:
      (gate, chip) -> the entry.

    Raises:
      RecordError: there is no record, it was changed by hand, a gate is not in it, or entries are
        void; each is named.
    """
    how = "`make gates` estimates what is missing"
    kept = read_sealed(path, how)
    found = {(data["gate"], data["chip"]): Entry.from_json(data) for data in kept["entries"]}
    by_name = {gate.name: gate for gate in gates}
    wrong = {
        key: why_void(by_name[key[0]], entry) if key[0] in by_name else "there is no such gate"
        for key, entry in found.items()
    }
    wanted = {(gate.name, chip) for gate in by_name.values() for chip in gate.chips}
    if only_valid:
        return {key: entry for key, entry in found.items() if not wrong[key]}
    faults = [f"the record of {name} on {chip} is void: {why}"
              for (name, chip), why in wrong.items() if why]  # fmt: skip
    faults += [
        f"there is no record of {name} on {chip}" for name, chip in sorted(wanted - set(found))
    ]
    if faults:
        raise RecordError("; ".join([*faults, how]))
    return found


def write_entries(path: Path, entries: Iterable[Entry], gates: Iterable[Gate] = GATES) -> None:
    """Write a record, its entries in the order of gates and chips.

    Raises:
      OSError: the file cannot be written.
    """
    order = [gate.name for gate in gates]
    chips = list(CLOCKS)
    sorted_entries = sorted(entries, key=lambda it: (order.index(it.gate), chips.index(it.chip)))
    plain = [entry.to_json() for entry in sorted_entries]
    write_sealed(path, {"kind": _KIND, "entries": plain})


@dataclass(frozen=True)
class Line:
    """One line of the table of criteria: a gate, on one chip, against one rival.

    Attributes:
      gate: the gate.
      chip: the chip.
      rival: what it is compared with.
      entry: the estimates of both sides.
      measured: the kernel's measurement on that chip, or "queued".
    """

    gate: Gate
    chip: str
    rival: Rival
    entry: Entry
    measured: Measurement | str = QUEUED

    @property
    def criterion(self) -> str:
        """What is asked on this line, in words."""
        text = f"≤ {self.rival.limits[self.chip]:g} × {self.rival.name}"
        if self.gate.bytes_once:
            text += ", each byte once"
        return text

    @property
    def ratio(self) -> Ratio:
        """The kernel's estimate as a part of the rival's."""
        return self.entry.ratios()[self.rival.name]

    @property
    def bytes_over_least(self) -> float:
        """HBM bytes by the estimate, as a part of arguments and results once."""
        return self.entry.kernel.hbm_bytes / self.gate.least_bytes

    @property
    def outcome(self) -> str:
        """Say "met", or by how much it is missed, by the estimates."""
        over = self.ratio.value / self.rival.limits[self.chip]
        if over > 1:
            return f"missed by {over - 1:.1%}"
        if self.gate.bytes_once and self.bytes_over_least > MORE_BYTES:
            return f"missed: {self.bytes_over_least:.2f} of the bytes"
        return "met"


def lines(
    entries: Mapping[tuple[str, str], Entry],
    measurements: Mapping[tuple[str, str], Measurement] | None = None,
    *,
    gates: Iterable[Gate] = GATES,
) -> list[Line]:
    """Return the lines of the table: each gate, chip and rival.

    Args:
      entries: what `read_entries` gave.
      measurements: (gate, chip) -> a measurement of the kernel; what is not in it is "queued".
      gates: the gates.
    """
    measured = measurements or {}
    return [
        Line(
            gate,
            chip,
            rival,
            entries[gate.name, chip],
            measured.get((gate.name, chip), QUEUED),
        )
        for gate in gates
        for chip in gate.chips
        for rival in gate.rivals
    ]


def ahead(entries: Mapping[tuple[str, str], Entry], gate: Gate) -> tuple[str, ...]:
    """Return the chips on which a gate's kernel is estimated to take less than its first rival."""
    first = gate.rivals[0].name
    return tuple(chip for chip in gate.chips if entries[gate.name, chip].ratios()[first].value < 1)
