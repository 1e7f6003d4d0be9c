"""Records of measurements: what kernels took on real devices, and whether that still holds.

`make bench-gpu` adds to them, on whatever machine has the device. A record without an entry is no
fault: nobody has measured it yet, and a table says "queued". An entry of code that has changed is
void, and whoever reads the record is told so by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pallas_rungs.performance.bench import Measurement
from pallas_rungs.performance.gates import gate_named
from pallas_rungs.performance.gpu_tasks import task_named
from pallas_rungs.performance.sealed import FOLDER, RecordError, read_sealed, write_sealed

GPU_RECORD: Final = FOLDER / "gpu.json"
"""Measurements of the tasks of `gpu_tasks`."""

TPU_RECORD: Final = FOLDER / "tpu.json"
"""Measurements of the gates, by the chip's name in this book."""

_HOW: Final = (
    "`make bench-gpu` measures it anew where the device is; `make bench-gpu WITH=--forget` takes "
    "what is void out of the record, and its rows are queued again"
)

Codes = Callable[[str, str], tuple[str, str]]
"""Task and chip -> the hashes of the kernel and of its rival as they are now; a LookupError where
there is no such task."""


@dataclass(frozen=True)
class Measured:
    """A kernel and its rival, measured on one device, one after the other.

    Attributes:
      task: the name of the gate or of the GPU's task.
      chip: the GPU's own name, or this book's name of a TPU.
      kernel: the kernel's measurement.
      rival: that of the same task as written for XLA.
    """

    task: str
    chip: str
    kernel: Measurement
    rival: Measurement

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "task": self.task,
            "chip": self.chip,
            "kernel": self.kernel.to_json(),
            "rival": self.rival.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measured:
        """Read what `to_json` gave.

        Raises:
          ProvenanceError: a figure has no provenance, or one that lacks something.
        """
        sides = (Measurement.from_json(data[side]) for side in ("kernel", "rival"))
        return cls(data["task"], data["chip"], *sides)


def codes_of_gates(task: str, chip: str) -> tuple[str, str]:
    """Return the hashes of a gate's kernel and first rival on a chip.

    Raises:
      LookupError: there is no such gate, or it is not for that chip.
    """
    gate = gate_named(task)
    return gate.code(chip), gate.code(chip, gate.rivals[0])


def codes_of_tasks(task: str, chip: str) -> tuple[str, str]:
    """Return the hashes of a GPU task's kernel and rival; they are the same on every GPU.

    Raises:
      LookupError: there is no such task.
    """
    found = task_named(task)
    return found.code(), found.code(rival=True)


def why_void(entry: Measured, codes: Codes) -> str:
    """Say why an entry is void; empty where it holds."""
    try:
        kernel, rival = codes(entry.task, entry.chip)
    except LookupError as error:
        return str(error)
    for side, now, measured in (("kernel", kernel, entry.kernel), ("rival", rival, entry.rival)):
        given = measured.provenance
        if given.code != now:
            return f"the {side} or its configuration has changed since {given.date}"
    return ""


def read_measured(
    path: Path = GPU_RECORD, codes: Codes = codes_of_tasks, *, only_valid: bool = False
) -> dict[tuple[str, str], Measured]:
    """Read a record of measurements; empty where there is none.

    Args:
      path: the file.
      codes: tells the hashes of the code as it is now.
      only_valid: leave void entries out, in place of refusing the record for them.

    Returns:
      (task, chip) -> the entry.

    Raises:
      RecordError: it was changed by hand, or entries are void; each is named.
      ProvenanceError: a figure in it has no provenance, or one that lacks something.
    """
    if not path.is_file():
        return {}
    kept = read_sealed(path, "`make bench-gpu` measures anew where the device is")
    entries = [Measured.from_json(data) for data in kept["entries"]]
    wrong = {(one.task, one.chip): why_void(one, codes) for one in entries}
    if not only_valid and any(wrong.values()):
        told = (f"the record of {t} on {c} is void: {why}" for (t, c), why in wrong.items() if why)
        raise RecordError("; ".join([*told, _HOW]))
    found = {(one.task, one.chip): one for one in entries}
    return {key: one for key, one in found.items() if not wrong[key]}


def forget_void(path: Path, codes: Codes) -> list[tuple[str, str]]:
    """Take the entries that are void out of a record, where there is one; it needs no device.

    Returns:
      (task, chip) of those that were taken out.

    Raises:
      RecordError: it was changed by hand.
      ProvenanceError: a figure in it has no provenance, or one that lacks something.
      OSError: the file cannot be written.
    """
    if not path.is_file():
        return []
    held = read_measured(path, codes, only_valid=True)
    entries = read_sealed(path, _HOW)["entries"]
    void = [key for it in entries if (key := (it["task"], it["chip"])) not in held]
    if void:
        write_measured(path, held.values())
    return void


def write_measured(path: Path, entries: Iterable[Measured]) -> None:
    """Write a record, its entries by task and chip.

    Raises:
      OSError: the file cannot be written.
    """
    ordered = sorted(entries, key=lambda one: (one.task, one.chip))
    plain = [one.to_json() for one in ordered]
    write_sealed(path, {"kind": "measurements", "entries": plain})
