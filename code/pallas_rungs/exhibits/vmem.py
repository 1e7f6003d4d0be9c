"""VMEM that a copy by blocks keeps in flight, and the budget that the TPU compiler gives it.

The tile padding is the library's own; the buffering and the limits are what libtpu 0.0.50.1 does
when it compiles such programs (`tests/exhibits/test_vmem_compiler.py` compiles them and compares).
All sizes are estimates for the windows alone: a kernel's own temporaries come on top.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax._src.mesh import AbstractDevice
from jax.sharding import AbstractMesh

from pallas_rungs.compilers.chips import chip_named
from pallas_rungs.performance.chip_table import chip_facts
from pallas_rungs.performance.vmem_budget import scoped_limit, stored_shape, tile


def pretend(chip: str) -> Any:
    """Return a context in which jax traces and lowers as for that chip, with none attached."""
    found = chip_named(chip)
    device = AbstractDevice(device_kind=found.device_kind, num_cores=found.cores, platform="tpu")
    return jax.sharding.use_abstract_mesh(AbstractMesh((1,), ("x",), abstract_device=device))


def in_flight(
    chip: str, dtype: str, array: tuple[int, ...], window: tuple[int, ...], buffers: int
) -> dict[str, Any]:
    """Compute the VMEM of an input window and an output window, and hold it to the budget.

    Args:
      chip: a key of `vmem_budget.SCOPED_LIMITS`.
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
        budget = "depends" if 2 * array_bytes <= chip_facts(chip).vmem else "over"
    return {
        "tile": list(tile(chip, dtype, window)),
        "stored": list(stored),
        "blockBytes": math.prod(window) * itemsize,
        "storedBytes": stored_bytes,
        "inFlight": total,
        "limit": limit,
        "budget": budget,
    }
