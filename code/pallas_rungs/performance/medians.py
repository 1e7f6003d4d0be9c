"""Medians of measured times that the library tokamax ships.

tokamax keeps, for each chip and operation, a JSON file: shapes and options of a call, the fastest
configuration that its tuner found for them, and five measured times of that one. They are read as
they lie there, without importing the library; `measured_calls` builds the calls to go with them.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from pallas_rungs import extras

FOLDER: Final = extras.variable("tokamax")
"""The variable that names the folder in which tokamax is installed; else `.venv/tokamax`."""

DEVICES: Final = {
    "v5e": "tpu_v5_lite",
    "v5p": "tpu_v5",
    "v6e": "tpu_v6_lite",
    "tpu7x": "tpu7x",
}
"""Chips that tokamax has medians of, and its names for them."""

OPERATIONS: Final = {
    "ragged_dot": "pallas_mosaic_tpu_ragged_dot",
    "ragged_dot v2": "pallas_mosaic_tpu_v2_ragged_dot",
    "flash attention": "pallas_mosaic_tpu_flash_attention",
    "cross entropy": "pallas_mosaic_tpu_linear_softmax_cross_entropy_loss",
    "layer norm": "normalization",
    "gated linear unit": "gated_linear_unit",
}
"""The operations that are compared, and tokamax's names for them."""

XLA: Final = ("layer norm", "gated linear unit")
"""Those of them that have no Pallas kernel: XLA's own code was measured."""

QUANTISED: Final = "quantised operands: their arrays are of a library that is not installed"
TWIN: Final = "differs from another key in what it returns or how it sums up: the same kernel"
TRANSPOSED: Final = (
    "the second operand is transposed: since it was measured, the library has exchanged what "
    "tile_k and tile_n mean there, so the stored configuration is of another kernel"
)
UNMEASURED: Final = "no configuration was measured"

_KINDS: Final = {"bf16": "bfloat16", "f32": "float32", "i32": "int32"}
_TRANSPOSED_RHS: Final = [[[1], [2]], [[], []]]
_CONTRACTS_ROWS: Final = [[[0], [0]], [[], []]]
_AS_MEASURED: Final = ("v6e",)
"""Chips whose transposed products were measured with the tiles as the library now reads them."""


class NoMediansError(LookupError):
    """tokamax is not here; the message says how to install it."""


@dataclass(frozen=True)
class Point:
    """One measured kernel.

    Attributes:
      chip: the chip that it was measured on.
      operation: one of `OPERATIONS`.
      entry: where it stands in tokamax's file, from 0.
      key: shapes and options of the call, as the file has them.
      config: the stored configuration, the fastest that was found.
      measured_ms: median of the measured times, in milliseconds.
      left_out: why it is not compared; empty where it is.
    """

    chip: str
    operation: str
    entry: int
    key: dict[str, Any]
    config: dict[str, Any]
    measured_ms: float
    left_out: str = ""

    @property
    def name(self) -> str:
        """A name for it: chip, operation, entry."""
        return f"{self.chip}/{self.operation}/{self.entry}"

    @property
    def shapes(self) -> str:
        """Its arrays, in words."""
        named = {name: value for name, value in self.key.items() if isinstance(value, str)}
        arrays = [f"{name} {value}" for name, value in named.items() if "[" in value]
        groups = self.key.get("group_sizes")
        if isinstance(groups, dict):
            arrays.append(f"{groups['num_groups']} groups, {groups['total_size']} rows in all")
        elif groups:
            arrays.append(_of_sizes(groups))
        numbers = self.key.get("ragged_dot_dimension_numbers")
        if numbers and numbers["dot_dimension_numbers"] == _TRANSPOSED_RHS:
            arrays.append("rhs transposed")
        if numbers and numbers["dot_dimension_numbers"] == _CONTRACTS_ROWS:
            arrays.append("rows contracted")
        if (self.key.get("mask") or {}).get("causal_mask"):
            arrays.append("causal")
        return ", ".join(arrays)


def _of_sizes(sizes: Sequence[int]) -> str:
    """Tell of groups: equal neighbours together, `groups of 4096, 7 × 0 rows`; many in sum."""
    runs = [(size, len(list(same))) for size, same in itertools.groupby(sizes)]
    if len(runs) > _MOST_RUNS:
        return f"{len(sizes)} uneven groups, {sum(sizes)} rows in all, {max(sizes)} in the largest"
    told = ", ".join(str(size) if count == 1 else f"{count} × {size}" for size, count in runs)
    return f"groups of {told} rows"


_MOST_RUNS: Final = 4


def folder() -> Path:
    """Return the folder in which tokamax is looked for."""
    return extras.folder("tokamax")


def why_unavailable() -> str:
    """Say why tokamax cannot be used here; empty when it can."""
    return extras.why_missing("tokamax")


def version() -> str:
    """Return tokamax's version.

    Raises:
      NoMediansError: it is not here.
    """
    try:
        return extras.version("tokamax")
    except extras.ExtraMissingError as error:
        raise NoMediansError(str(error)) from None


def medians(chip: str, operation: str) -> tuple[Point, ...]:
    """Read what tokamax ships for an operation on a chip.

    Args:
      chip: one of `DEVICES`.
      operation: one of `OPERATIONS`.

    Returns:
      A point for each key of the file; none where there is no file.

    Raises:
      NoMediansError: tokamax is not here.
      ValueError: no such chip or operation.
    """
    if chip not in DEVICES or operation not in OPERATIONS:
        raise ValueError(
            f"no medians of {operation!r} on {chip!r}: chips are {', '.join(DEVICES)}, "
            f"operations {', '.join(OPERATIONS)}"
        )
    if why := why_unavailable():
        raise NoMediansError(why)
    data = folder() / "tokamax" / "data" / "autotuning" / DEVICES[chip]
    file = data / f"{OPERATIONS[operation]}.json"
    if not file.is_file():
        return ()
    seen: set[str] = set()
    points = []
    for entry, (key, found) in enumerate(json.loads(file.read_text("utf-8")).items()):
        points.append(_point(chip, operation, entry, json.loads(key), found, seen))
    return tuple(points)


def all_medians() -> Iterator[Point]:
    """Yield every point of the compared operations, those left out among them.

    Raises:
      NoMediansError: tokamax is not here.
    """
    for chip in DEVICES:
        for operation in OPERATIONS:
            yield from medians(chip, operation)


def _point(
    chip: str,
    operation: str,
    entry: int,
    key: dict[str, Any],
    found: Mapping[str, Any],
    seen: set[str],
) -> Point:
    if not found:
        return Point(chip, operation, entry, key, {}, math.nan, UNMEASURED)
    times = {
        config: statistics.median(measured["evaluation_times_ms"])
        for config, measured in found.items()
    }
    fastest = min(times, key=lambda config: times[config])
    config = json.loads(fastest)
    kernel = {name: value for name, value in key.items() if name not in _TWINS[operation]}
    same = json.dumps([kernel, config], sort_keys=True)
    left_out = ""
    if any(isinstance(key.get(name), dict) for name in ("lhs", "rhs")):
        left_out = QUANTISED
    elif same in seen:
        left_out = TWIN
    elif operation == "ragged_dot" and chip not in _AS_MEASURED and _is_transposed(key):
        left_out = TRANSPOSED
    seen.add(same)
    return Point(chip, operation, entry, key, config, times[fastest], left_out)


_TWINS: Final[dict[str, tuple[str, ...]]] = {
    "ragged_dot": ("return_residuals", "preferred_element_type"),
    "ragged_dot v2": ("return_residuals", "preferred_element_type"),
    "flash attention": ("return_residuals",),
    "cross entropy": ("return_residuals", "reduction"),
    "layer norm": (),
    "gated linear unit": (),
}
"""Options that leave the kernel as it is."""


def _is_transposed(key: Mapping[str, Any]) -> bool:
    numbers = key["ragged_dot_dimension_numbers"]
    return bool(numbers["dot_dimension_numbers"] == _TRANSPOSED_RHS)


def array(text: str) -> jax.ShapeDtypeStruct:
    """Read an array's type as tokamax writes it, `bf16[8,128]`.

    Raises:
      ValueError: it is not written so, or its dtype is not one of those of the compared points.
    """
    kind, bracket, sizes = text.partition("[")
    if kind not in _KINDS or not bracket or not sizes.endswith("]"):
        raise ValueError(
            f"{text!r} is no array of the compared points: expected {', '.join(_KINDS)} and sizes "
            "in brackets, as bf16[8,128]"
        )
    shape = tuple(int(size) for size in sizes[:-1].split(",") if size)
    return jax.ShapeDtypeStruct(shape, jnp.dtype(_KINDS[kind]))


def work(point: Point) -> tuple[int, int]:
    """Return the operations of the matrix units that a point's task needs, and its bytes.

    Bytes are those of its arguments and results, each once. What an implementation moves beyond
    that is its own affair, and no part of a roofline.
    """
    key = point.key
    if point.operation.startswith("ragged_dot"):
        lhs, rhs = array(key["lhs"]), array(key["rhs"])
        numbers = key["ragged_dot_dimension_numbers"]["dot_dimension_numbers"]
        rows, columns = lhs.shape
        if numbers == _CONTRACTS_ROWS:
            groups = len(group_sizes(key))
            out_size = groups * columns * rhs.shape[1]
            operations = 2 * rows * columns * rhs.shape[1]
        else:
            width = rhs.shape[1] if numbers == _TRANSPOSED_RHS else rhs.shape[2]
            out_size = rows * width
            operations = 2 * rows * columns * width
        return operations, _size(lhs) + _size(rhs) + 2 * out_size
    if point.operation == "flash attention":
        q, k, v = array(key["q"]), array(key["k"]), array(key["v"])
        batch, length, heads, depth = q.shape
        pairs = length * k.shape[1]
        if key["mask"]["causal_mask"]:
            pairs = sum(min(row + 1, k.shape[1]) for row in range(length))
        operations = 2 * batch * heads * pairs * (depth + v.shape[3])
        out_bytes = batch * length * heads * v.shape[3] * q.dtype.itemsize
        return operations, _size(q) + _size(k) + _size(v) + out_bytes
    if point.operation == "layer norm":
        x = array(key["x"])
        return 0, 2 * _size(x) + _size(array(key["scale"])) + _size(array(key["offset"]))
    if point.operation == "gated linear unit":
        x, weights = array(key["x"]), array(key["weights"])
        elements = math.prod(x.shape) // x.shape[-1] * weights.shape[-1]
        out_bytes = elements * x.dtype.itemsize
        return 4 * elements * x.shape[-1], _size(x) + _size(weights) + out_bytes
    x, labels, w = array(key["x"]), array(key["labels"]), array(key["w"])
    operations = 2 * x.shape[0] * x.shape[1] * w.shape[1]
    return operations, _size(x) + _size(labels) + _size(w) + 4 * x.shape[0]


def _size(given: jax.ShapeDtypeStruct) -> int:
    size: int = math.prod(given.shape) * given.dtype.itemsize
    return size


def group_sizes(key: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the sizes of the groups of a key: as stored, or drawn as the library draws them."""
    given = key["group_sizes"]
    if not isinstance(given, dict):
        return tuple(given)
    drawn = np.random.default_rng(0).choice(
        given["num_groups"], (given["total_size"],), p=None, replace=True
    )
    return tuple(int(n) for n in np.bincount(drawn, minlength=given["num_groups"]))
