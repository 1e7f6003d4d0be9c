"""tokamax's kernels, called with the configurations whose measured times `medians` reads."""

from __future__ import annotations

import dataclasses
import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp

from pallas_rungs import extras
from pallas_rungs.performance.medians import (
    NoMediansError,
    Point,
    array,
    group_sizes,
    why_unavailable,
)


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

    sizes = jnp.asarray(group_sizes(key), jnp.int32)
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
