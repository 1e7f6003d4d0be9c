"""VMEM that a copy by blocks keeps in flight, and the budget that the TPU compiler gives it.

The tile padding is the library's own; the buffering and the limits are what libtpu 0.0.50.1 does
when it compiles such programs (`tests/exhibits/test_vmem_compiler.py` compiles them and compares).
All sizes are estimates for the windows alone: a kernel's own temporaries come on top.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import core as jax_core
from jax._src import tpu_info
from jax._src.mesh import AbstractDevice
from jax.sharding import AbstractMesh

from pallas_rungs.compilers.chips import CURRENT_CHIPS, chip_named

_MIB = 2**20

SCOPED_LIMITS: dict[str, int] = {
    "v4": 16 * _MIB,
    "v5e": 16 * _MIB,
    "v5p": 16 * _MIB,
    "v6e": 32 * _MIB,
    "tpu7x": 32 * _MIB,
}
"""Bytes of VMEM that the compiler gives one kernel unless `vmem_limit_bytes` says otherwise."""


def scoped_limit(chip: str) -> int:
    """Return the compiler's default VMEM limit for one kernel, in bytes.

    Raises:
      ValueError: a chip that the sandbox does not offer.
    """
    if chip not in SCOPED_LIMITS:
        raise ValueError(f"unknown chip {chip!r}; one of {', '.join(CURRENT_CHIPS)}")
    return SCOPED_LIMITS[chip]


def pretend(chip: str) -> Any:
    """Return a context in which jax traces and lowers as for that chip, with none attached."""
    found = chip_named(chip)
    device = AbstractDevice(device_kind=found.device_kind, num_cores=found.cores, platform="tpu")
    return jax.sharding.use_abstract_mesh(AbstractMesh((1,), ("x",), abstract_device=device))


@lru_cache(maxsize=4096)
def tile(chip: str, dtype: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tile in which a window of that shape is stored, a number a dimension."""
    with pretend(chip):
        tiling = tpu_info.infer_tiling(jax_core.ShapedArray(shape, jnp.dtype(dtype)))
    return tuple(int(extent or 1) for extent in tiling)


def stored_shape(chip: str, dtype: str, shape: tuple[int, ...]) -> list[int]:
    """Return the shape rounded up to whole tiles."""
    tiles = tile(chip, dtype, shape)
    return [-(-extent // step) * step for extent, step in zip(shape, tiles, strict=True)]


@lru_cache(maxsize=16)
def capacity(chip: str) -> int:
    """Return the VMEM of one TensorCore of the chip, in bytes, as the library states it."""
    with pretend(chip):
        return int(tpu_info.get_tpu_info().vmem_capacity_bytes)


def in_flight(
    chip: str, dtype: str, array: tuple[int, ...], window: tuple[int, ...], buffers: int
) -> dict[str, Any]:
    """Compute the VMEM of an input window and an output window, and hold it to the budget.

    Args:
      chip: a key of `SCOPED_LIMITS`.
      dtype: the array's dtype.
      array: the array's shape.
      window: the block's shape, squeezed dimensions as 1.
      buffers: copies of each window, 1 or 2.

    Returns:
      `budget` is `"fits"`, `"over"`, or `"depends"`: over the limit, but both whole arrays fit
      into VMEM, where XLA may place them; then the compiler allocates fewer windows.
    """
    itemsize = jnp.dtype(dtype).itemsize
    stored = stored_shape(chip, dtype, window)
    stored_bytes = math.prod(stored) * itemsize
    total = 2 * buffers * stored_bytes
    array_bytes = math.prod(stored_shape(chip, dtype, array)) * itemsize
    limit = scoped_limit(chip)
    if total <= limit:
        budget = "fits"
    else:
        budget = "depends" if 2 * array_bytes <= capacity(chip) else "over"
    return {
        "tile": list(tile(chip, dtype, window)),
        "stored": stored,
        "blockBytes": math.prod(window) * itemsize,
        "storedBytes": stored_bytes,
        "inFlight": total,
        "limit": limit,
        "budget": budget,
    }
