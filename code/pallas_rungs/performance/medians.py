"""Medians of measured times that the library tokamax ships, and its kernels to go with them.

tokamax keeps, for each chip and operation, a JSON file: shapes and options of a call, the fastest
configuration that its tuner found for them, and five measured times of that one. They are read as
they lie there, without importing the library. Its kernels are imported with stand-ins for packages
that only profiling and quantised arrays need.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import json
import math
import statistics
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
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
            groups = len(_group_sizes(key))
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


def _group_sizes(key: Mapping[str, Any]) -> tuple[int, ...]:
    """The sizes of the groups: as stored, or drawn as the library draws them."""
    given = key["group_sizes"]
    if not isinstance(given, dict):
        return tuple(given)
    drawn = np.random.default_rng(0).choice(
        given["num_groups"], (given["total_size"],), p=None, replace=True
    )
    return tuple(int(n) for n in np.bincount(drawn, minlength=given["num_groups"]))


def call(point: Point) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Build the call of tokamax's kernel with the stored configuration.

    Returns:
      A function and its arguments: shapes and dtypes; sizes of groups as numbers.

    Raises:
      NoMediansError: tokamax is not here.
      ValueError: an array of the key is none that is known here.
    """
    return _CALLS[point.operation](point)


def neighbours(point: Point) -> tuple[dict[str, Any], ...]:
    """Return the configurations that the library's tuner has next to a stored one.

    They are of the space that the tuner searches, and differ from the stored one in one number, by
    no more than a factor of two, or in one switch.

    Raises:
      NoMediansError: tokamax is not here.
      ValueError: the operation has no such space here.
    """
    if point.operation == "ragged_dot":
        lhs, rhs = array(point.key["lhs"]), array(point.key["rhs"])
        numbers = _dimension_numbers(point.key)
        bound = types.SimpleNamespace(
            args=(lhs, rhs), arguments={"ragged_dot_dimension_numbers": numbers}
        )
        tuner = _kernels("ragged_dot.pallas_mosaic_tpu").PallasMosaicTpuRaggedDot()
    elif point.operation == "flash attention":
        arrays = {name: array(point.key[name]) for name in ("q", "k", "v")}
        bound = types.SimpleNamespace(arguments=arrays)
        tuner = _kernels("attention.pallas_mosaic_tpu").PallasMosaicTpuFlashAttention()
    else:
        raise ValueError(
            f"{point.operation}: its tuner's space is not read here; it is for ragged_dot and "
            "flash attention"
        )
    space = [dataclasses.asdict(config) for config in tuner._get_autotuning_configs(bound)]
    near = [config for config in space if _next_to(config, point.config)]
    return tuple(sorted(near, key=lambda config: [int(value) for value in config.values()]))


def _next_to(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    changed = [(one[name], other[name]) for name in other if one[name] != other[name]]
    if len(changed) != 1:
        return False
    new, old = map(int, changed[0])
    return isinstance(changed[0][1], bool) or max(new, old) <= 2 * min(new, old)


def _dimension_numbers(key: Mapping[str, Any]) -> jax.lax.RaggedDotDimensionNumbers:
    numbers = key["ragged_dot_dimension_numbers"]
    return jax.lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=numbers["dot_dimension_numbers"],
        lhs_ragged_dimensions=numbers["lhs_ragged_dimensions"],
        rhs_group_dimensions=numbers["rhs_group_dimensions"],
    )


def _ragged_dot(point: Point) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    first = _kernels("ragged_dot.pallas_mosaic_tpu")
    second = _kernels("ragged_dot.pallas_mosaic_tpu_v2")
    key = dict(point.key)
    module, operation = (
        (first, first.PallasMosaicTpuRaggedDot)
        if point.operation == "ragged_dot"
        else (second, second.PallasMosaicTpuV2RaggedDot)
    )
    options = {
        "ragged_dot_dimension_numbers": _dimension_numbers(key),
        "precision": tuple(jax.lax.Precision[name] for name in key["precision"]),
        "preferred_element_type": (
            None
            if key["preferred_element_type"] is None
            else jnp.dtype(key["preferred_element_type"])
        ),
        "fuse_gateup_activation": key["fuse_gateup_activation"],
        "return_residuals": key["return_residuals"],
    }
    config = module.Config(**point.config)

    def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any) -> Any:
        out, residuals = operation()._fwd(
            lhs, rhs, group_sizes=group_sizes, config=config, **options
        )
        return (out, residuals) if key["return_residuals"] else out

    sizes = jnp.asarray(_group_sizes(key), jnp.int32)
    return ragged_dot, (array(key["lhs"]), array(key["rhs"]), sizes)


def _flash_attention(point: Point) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    base = _kernels("attention.base")
    module = _kernels("attention.pallas_mosaic_tpu")
    key = point.key
    default = jax.lax.Precision.DEFAULT
    layouts = {
        name: module.splash.QKVLayout(value)
        for name, value in point.config.items()
        if name.endswith("_layout")
    }
    config = module.Config(**{**point.config, **layouts})
    causal = bool(key["mask"]["causal_mask"])

    def flash_attention(q: Any, k: Any, v: Any) -> Any:
        out, residuals = module.PallasMosaicTpuFlashAttention()._fwd(
            q,
            k,
            v,
            precision=((default, default), (default, default)),
            logits_dtype=jnp.dtype("float32"),
            logits_scale=key["logits_scale"],
            bias=None,
            logits_soft_cap=None,
            mask=base.Mask(is_causal=causal),
            dropout_mask=None,
            dropout_rate=0.0,
            paging_info=None,
            q_indices=None,
            k_indices=None,
            normalize_output=True,
            return_residuals=key["return_residuals"],
            config=config,
        )
        return (out, residuals) if key["return_residuals"] else out

    return flash_attention, tuple(array(key[name]) for name in ("q", "k", "v"))


def _cross_entropy(point: Point) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    kernel = _kernels("linear_softmax_cross_entropy_loss.pallas_mosaic_tpu_kernel")
    key = point.key
    blocks = {name: point.config[name] for name in ("b_block_size", "h_block_size", "v_block_size")}

    def cross_entropy(x: Any, labels: Any, w: Any) -> Any:
        loss, lse = kernel.linear_softmax_cross_entropy_loss_fwd_pallas_mosaic_tpu(
            x, labels, w, reduction=key["reduction"], **blocks
        )
        return (loss, (lse,)) if key["return_residuals"] else loss

    return cross_entropy, tuple(array(key[name]) for name in ("x", "labels", "w"))


def _layer_norm(point: Point) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    base = _kernels("normalization.base")
    key = point.key
    options = ("axis", "epsilon", "scale_offset", "subtract_mean", "return_residuals")
    given = {name: key[name] for name in options}

    def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
        out, residuals = base.Normalization()._fwd(x, scale, offset, config=None, **given)
        return (out, residuals) if key["return_residuals"] else out

    return layer_norm, tuple(array(key[name]) for name in ("x", "scale", "offset"))


def _gated_linear_unit(point: Point) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    base = _kernels("gated_linear_unit.base")
    key = point.key
    activation = getattr(jax.nn, key["activation"].rsplit(".", 1)[1])
    precision = jax.lax.DotAlgorithmPreset[key["precision"]]

    def gated_linear_unit(x: Any, weights: Any) -> Any:
        return base.GatedLinearUnit()._fwd(
            x,
            weights,
            activation=activation,
            precision=precision,
            return_residuals=False,
            config=None,
        )[0]

    return gated_linear_unit, (array(key["x"]), array(key["weights"]))


_CALLS: Final[dict[str, Callable[[Point], tuple[Callable[..., Any], tuple[Any, ...]]]]] = {
    "ragged_dot": _ragged_dot,
    "ragged_dot v2": _ragged_dot,
    "flash attention": _flash_attention,
    "cross entropy": _cross_entropy,
    "layer norm": _layer_norm,
    "gated linear unit": _gated_linear_unit,
}


def _kernels(name: str) -> Any:
    """Import a module of tokamax's operations, without what its top imports."""
    if why := why_unavailable():
        raise NoMediansError(why)
    extras.open_tokamax()
    return importlib.import_module(f"tokamax._src.ops.{name}")
