"""Whether the TPU lowering and compiler take a BlockSpec, and in which words they refuse."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import core as jax_core
from jax._src.pallas import core as pallas_core
from jax._src.pallas.mosaic import core as tpu_core
from jax._src.pallas.mosaic import lowering
from jax.experimental import pallas as pl

from pallas_rungs.exhibits import vmem
from pallas_rungs.performance import vmem_budget

KERNEL_NAME = "copy_kernel"


def copy_kernel(x_ref: Any, o_ref: Any) -> None:
    """Copy the block."""
    o_ref[...] = x_ref[...]


def block_shape_refusal(chip: str, mapping: pallas_core.BlockMapping) -> str:
    """Ask the lowering's own check of block shapes.

    Returns:
      The refusal's words up to the array's shape; empty when the shape is legal.
    """
    debug_info = jax_core.DebugInfo("pallas_call", KERNEL_NAME, ("x_ref", "o_ref"), ())
    unused: Any = None  # the check takes a lowering context and drops it
    with vmem.pretend(chip):
        try:
            lowering._check_block_mappings((mapping,), unused, debug_info, tpu_core.CoreType.TC)
        except ValueError as error:
            return shortened(str(error))
    return ""


def shortened(message: str) -> str:
    """Cut a lowering refusal after the array's shape: what follows is the traced index map."""
    return " ".join(message.partition(", and index_map ")[0].split())


@lru_cache(maxsize=16)
def lowering_words(which: str) -> str:
    """Return the first line of a refusal that comes later in lowering than the block check.

    Args:
      which: `"scalar"` (every dimension squeezed) or `"mixed"` (some dimensions `Element`,
        others `Blocked`).

    Raises:
      RuntimeError: the installed jax lowers such a program.
    """
    shape, spec = {
        "scalar": ((1, 1), pl.BlockSpec((None, None), lambda i, j: (i, j))),
        "mixed": ((8, 128), pl.BlockSpec((pl.Element(8), 128), lambda i, j: (i, j))),
    }[which]
    call = pl.pallas_call(
        copy_kernel,
        grid=(1, 1),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
    )
    with vmem.pretend("v5e"):
        traced = jax.jit(call).trace(jax.ShapeDtypeStruct(shape, jnp.float32))
        try:
            traced.lower(lowering_platforms=("tpu",))
        except Exception as error:
            return str(error).splitlines()[0]
    raise RuntimeError(f"the installed jax lowers the {which!r} program; the sandbox says refused")


def refusals(chip: str, mapping: pallas_core.BlockMapping) -> list[dict[str, str]]:
    """List what lowering and compiling refuse of the mapping; VMEM is not looked at.

    Returns:
      Dictionaries with `rung` (`"lower"` or `"compile"`), `kind` and `words`. `kind` is
      `"shape"`, `"scalar"` or `"mixed"` for lowering; only the first refusal is listed, as
      lowering stops there. `"aligned"` is the compiler's: an `Element` index that it cannot prove
      to be a multiple of the tile; its words name tile and dimension.
    """
    if words := block_shape_refusal(chip, mapping):
        return [{"rung": "lower", "kind": "shape", "words": words}]
    dims = mapping.block_shape
    if all(isinstance(dim, pallas_core.Squeezed) for dim in dims):
        return [{"rung": "lower", "kind": "scalar", "words": lowering_words("scalar")}]
    element = [isinstance(dim, pallas_core.Element) for dim in dims]
    if any(element) and any(isinstance(dim, pallas_core.Blocked) for dim in dims):
        return [{"rung": "lower", "kind": "mixed", "words": lowering_words("mixed")}]
    return unaligned(chip, mapping)


def unaligned(chip: str, mapping: pallas_core.BlockMapping) -> list[dict[str, str]]:
    """Find the first dimension of an element window whose starts need not be multiples of a tile.

    With one `Element` dimension, squeezed dimensions are held to the same rule.
    The compiler proves divisibility from the index map alone, as if the grid had no end: the
    start of program 1 minus that of program 0 must be a multiple of the tile.
    """
    if not any(isinstance(dim, pallas_core.Element) for dim in mapping.block_shape):
        return []
    window = pallas_core._get_block_shape(mapping.block_shape)
    tiles = vmem_budget.tile(chip, mapping.array_aval.dtype.name, window)
    zero = (0,) * len(window)
    one = (1,) * len(window)
    here = mapping.compute_start_indices_interpret(zero)
    there = mapping.compute_start_indices_interpret(one)
    for axis, tile in enumerate(tiles):
        step = int(there[axis]) - int(here[axis])
        if step % tile:
            words = f"tiling ({tile}), dimension {axis}"
            return [{"rung": "compile", "kind": "aligned", "words": words}]
    return []
