"""The measured configurations that the library tokamax ships, all of them, as its files have them.

For each chip there is a folder, in it a file for each implementation of an operation. A file maps
keys, the arguments of a call, to what its tuner kept: configurations, each with five measured
times. They are read as JSON; nothing of the library is imported.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from pallas_rungs import extras
from pallas_rungs.performance.provenance import MEASUREMENT, UNKNOWN, Provenance, Quantity
from pallas_rungs.performance.units import SECONDS

CHIPS: Final = {
    "nvidia_a100-sxm4-40gb": "A100",
    "nvidia_h100_80gb_hbm3": "H100",
    "nvidia_b200": "B200",
    "tpu_v5_lite": "v5e",
    "tpu_v5": "v5p",
    "tpu_v6_lite": "v6e",
    "tpu7x": "tpu7x",
}
"""Folder of a chip -> its name here, GPUs first, each kind from old to new."""

OPERATIONS: Final = {
    "attention": r"flash_attention|dot_product_attention",
    "ragged dot": r"ragged_dot",
    "gated linear unit": r"gated_linear_unit",
    "normalisation": r"normalization",
    "cross entropy": r"linear_softmax_cross_entropy_loss",
}
"""Operations, and what the files of their implementations have in their names."""

KINDS: Final = {
    "pallas_mosaic_gpu": "Mosaic GPU",
    "pallas_mosaic_tpu": "Mosaic TPU",
    "pallas_tpu": "Mosaic TPU",
    "pallas_triton": "Pallas-Triton",
    "triton": "Triton",
    "jax_nn": "jax.nn",
}
"""How a file's name begins -> what its kernels are written for; everything else is XLA's."""

_ARRAY: Final = re.compile(r"\w+\[[\d,]*\]")
_CLASS: Final = re.compile(r"^class (\w+)", re.MULTILINE)
_SNAKE: Final = re.compile(r"(?!^)([A-Z])")


@dataclass(frozen=True)
class Entry:
    """What the tuner kept for one call.

    Attributes:
      chip: one of the names of `CHIPS`.
      implementation: the name of the file.
      key: the arguments of the call, as the file has them.
      medians: configuration, as JSON -> median of the measured times, in milliseconds.
    """

    chip: str
    implementation: str
    key: Mapping[str, Any]
    medians: Mapping[str, float]

    @cached_property
    def operation(self) -> str:
        """One of `OPERATIONS`, with ``, vjp`` behind it for a gradient; empty for all others."""
        for name, pattern in OPERATIONS.items():
            if re.search(pattern, self.implementation):
                return name + (", vjp" if self.implementation.endswith("_vjp") else "")
        return ""

    @property
    def kind(self) -> str:
        """What its kernel is written for: one of the values of `KINDS`, or ``XLA``."""
        return kind_of(self.implementation)

    @cached_property
    def name(self) -> str:
        """The key in one line: equal for equal calls, whatever implementation was measured."""
        return json.dumps(self.key, sort_keys=True)

    @property
    def fastest(self) -> tuple[dict[str, Any], float] | None:
        """The fastest configuration and its median in milliseconds; None where none was kept."""
        if not self.medians:
            return None
        config = min(self.medians, key=lambda config: self.medians[config])
        return json.loads(config), self.medians[config]

    @property
    def quantity(self) -> Quantity | None:
        """The median of the fastest configuration, with where it comes from; None without one."""
        if self.fastest is None:
            return None
        return Quantity(self.fastest[1] / 1e3, SECONDS, provenance(self.chip, self.shapes))

    @property
    def shapes(self) -> str:
        """The arrays of the call in words, and what else in its key is not at rest."""
        told = [f"{name} {value}" for name, value in self.key.items() if _is_array(value)]
        groups = self.key.get("group_sizes")
        if isinstance(groups, dict):
            told.append(f"{groups['num_groups']} groups")
        elif isinstance(groups, list):
            told.append(f"{len(groups)} groups")
        if (self.key.get("mask") or {}).get("causal_mask"):
            told.append("causal")
        elif (self.key.get("mask") or {}).get("bool_mask"):
            told.append("masked")
        return ", ".join(told)


def _is_array(value: object) -> bool:
    return isinstance(value, str) and _ARRAY.fullmatch(value) is not None


def kind_of(implementation: str) -> str:
    """Return what an implementation's kernel is written for, by its name."""
    for start, kind in KINDS.items():
        if implementation.startswith(start):
            return kind
    return "XLA"


def provenance(chip: str, arguments: str) -> Provenance:
    """Return where medians of a chip come from.

    Args:
      chip: one of the names of `CHIPS`.
      arguments: of which call, or of which calls, in words.

    Raises:
      ExtraMissingError: tokamax is not here.
    """
    version = extras.version("tokamax")
    return Provenance(
        MEASUREMENT,
        chip,
        (arguments,),
        "median of the five times that the library ships of its fastest configuration; with which "
        "jax and which compiler they were measured it does not say",
        {"tokamax": version},
        date=UNKNOWN,
        code=f"of tokamax {version}",
    )


def data_folder() -> Path:
    """Return the folder that holds a folder for each chip.

    Raises:
      ExtraMissingError: tokamax is not here.
    """
    if why := extras.why_missing("tokamax"):
        raise extras.ExtraMissingError(why)
    return extras.folder("tokamax") / "tokamax" / "data" / "autotuning"


@cache
def shipped(chip: str) -> tuple[Entry, ...]:
    """Read all entries for a chip, file by file in the order of their names.

    Args:
      chip: one of the names of `CHIPS`.

    Raises:
      ExtraMissingError: tokamax is not here.
      ValueError: no such chip.
    """
    folders = [folder for folder, name in CHIPS.items() if name == chip]
    if not folders:
        raise ValueError(f"nothing is shipped for {chip!r}; there is {', '.join(CHIPS.values())}")
    return tuple(
        Entry(chip, file.stem, json.loads(key), _medians(found))
        for file in sorted((data_folder() / folders[0]).glob("*.json"))
        for key, found in json.loads(file.read_text("utf-8")).items()
    )


def _medians(found: Mapping[str, Any]) -> dict[str, float]:
    return {
        config: statistics.median(measured["evaluation_times_ms"])
        for config, measured in found.items()
    }


def all_shipped() -> Iterator[Entry]:
    """Yield the entries of all chips.

    Raises:
      ExtraMissingError: tokamax is not here.
    """
    for chip in CHIPS.values():
        yield from shipped(chip)


@cache
def readers() -> Mapping[str, str]:
    """Return which module's class reads a file: the file's name is the class's in snake case.

    Returns:
      name of a file, without its ending -> dotted name of a module of the library; every class of
      it counts, those of its tests do not.

    Raises:
      ExtraMissingError: tokamax is not here.
    """
    root = data_folder().parents[1]
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*.py")):
        if path.stem.endswith("_test"):
            continue
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        for name in _CLASS.findall(path.read_text("utf-8")):
            found.setdefault(_SNAKE.sub(r"_\1", name).lower(), module)
    return found


@dataclass(frozen=True)
class Race:
    """One call for which several implementations were measured on one chip.

    Attributes:
      chip: one of the names of `CHIPS`.
      operation: one of `OPERATIONS`.
      shapes: the call's arrays in words.
      entries: an entry for each implementation that kept a measurement, the fastest first.
    """

    chip: str
    operation: str
    shapes: str
    entries: tuple[Entry, ...]

    @property
    def winner(self) -> Entry:
        """The fastest."""
        return self.entries[0]


def races(chip: str, operation: str, among: Sequence[str] = ()) -> tuple[Race, ...]:
    """Bring together what was measured for one call, by key.

    Args:
      chip: one of the names of `CHIPS`.
      operation: one of `OPERATIONS`, or one of them with ``, vjp``.
      among: only implementations for these (`Entry.kind`); all where it is empty.

    Returns:
      A race for each key that at least two implementations were measured for, in the order of
      the files.
    """
    together: dict[str, list[Entry]] = {}
    for entry in shipped(chip):
        chosen = not among or entry.kind in among
        if entry.operation == operation and chosen and entry.medians:
            together.setdefault(entry.name, []).append(entry)
    return tuple(
        Race(chip, operation, entries[0].shapes, tuple(sorted(entries, key=_median)))
        for entries in together.values()
        if len(entries) > 1
    )


def _median(entry: Entry) -> float:
    return min(entry.medians.values())
