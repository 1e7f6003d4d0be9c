"""What a kernel's blocks and scratch take of VMEM, from the traced call and by arithmetic alone.

A window, the room of one operand's block, is there twice, so that one block is copied while another
is used; scratch is there once. Both are laid out in tiles, by the library's own rule. What the
compiler adds for itself, room for spilled registers above all, nobody knows before it has compiled:
a budget is a floor of what it will say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax._src import core as jax_core
from jax._src import tpu_info
from jax._src.jaxpr_util import all_eqns
from jax._src.pallas import core as pallas_core

from pallas_rungs.performance.chip_table import as_device, chip_facts

_MIB = 2**20

SCOPED_LIMITS: Final[dict[str, int]] = {
    "v4": 16 * _MIB,
    "v5e": 16 * _MIB,
    "v5p": 16 * _MIB,
    "v6e": 32 * _MIB,
    "tpu7x": 32 * _MIB,
}
"""Bytes of VMEM that libtpu 0.0.50.1 gives one kernel unless `vmem_limit_bytes` says otherwise."""


@dataclass(frozen=True)
class Allocation:
    """A piece of VMEM that a call asks for.

    Attributes:
      name: what the kernel calls it, without `_ref`.
      role: `input window`, `output window` or `scratch`.
      place: its number among the operands, or the scratch, of its role, from 0.
      shape: of one buffer, squeezed dimensions as 1.
      dtype: short name of its elements' type.
      stored: the shape rounded up to whole tiles.
      buffers: how many of it.
    """

    name: str
    role: str
    place: int
    shape: tuple[int, ...]
    dtype: str
    stored: tuple[int, ...]
    buffers: int

    @property
    def unpadded(self) -> int:
        """Bytes of the elements, all buffers together."""
        return self.buffers * _size(self.shape, self.dtype)

    @property
    def size(self) -> int:
        """Bytes of VMEM, all buffers together."""
        return self.buffers * _size(self.stored, self.dtype)

    @property
    def report_name(self) -> str:
        """What libtpu 0.0.50.1 calls it in its VMEM report; all scratch has one name."""
        if self.role == "scratch":
            return "scratch operand"
        side = self.role.partition(" ")[0]
        return f"{side} window allocation for operator {side} {self.place}"


@dataclass(frozen=True)
class Budget:
    """What a call takes of VMEM, before the compiler's own, and what it may take.

    Attributes:
      chip: the chip that it was counted for.
      allocations: windows in the order of the operands, then scratch.
      limit: bytes that the compiler gives the kernel: its default, or the call's
        `vmem_limit_bytes`.
    """

    chip: str
    allocations: tuple[Allocation, ...]
    limit: int

    @property
    def total(self) -> int:
        """Bytes of all allocations."""
        return sum(it.size for it in self.allocations)

    @property
    def padding(self) -> int:
        """Bytes of them that hold no element, for tiles are stored whole."""
        return self.total - sum(it.unpadded for it in self.allocations)

    @property
    def left(self) -> int:
        """Bytes up to the limit, for the compiler's own; negative where the call alone is over."""
        return self.limit - self.total

    @property
    def verdict(self) -> str:
        """`over` the limit, or `room` for what the compiler needs for itself.

        Over is refused, unless XLA places an operand in VMEM as a whole, which then needs no
        window. Room need not suffice.
        """
        return "over" if self.left < 0 else "room"


def vmem_budget(function: Callable[..., Any], *args: Any, chip: str = "v5e") -> Budget:
    """Trace a call for a chip and count its windows and scratch.

    A window whose block is the same for every program has one buffer, as one with
    `pl.Buffered(1)` has. Operands that stay in HBM or lie in SMEM take none.

    Args:
      function: calls one `pallas_call` with a grid; it is traced, not run.
      *args: arrays, or `jax.ShapeDtypeStruct`s of theirs.
      chip: a key of `SCOPED_LIMITS`.

    Raises:
      ValueError: an unknown chip, or not one `pallas_call`, or a call without a grid, whose whole
        arrays are placed by XLA.
    """
    limit = scoped_limit(chip)
    with _as(chip):
        jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    calls = [eqn for _, eqn in all_eqns(jaxpr) if eqn.primitive.name == "pallas_call"]
    if len(calls) != 1:
        raise ValueError(f"the function calls pallas_call {len(calls)} times; budget one call")
    (call,) = calls
    mapping: Any = call.params["grid_mapping"]
    if not mapping.grid:
        raise ValueError("the call has no grid: XLA places its whole arrays, and no window is made")
    names = call.params["jaxpr"].debug_info.safe_arg_names(len(call.params["jaxpr"].invars))
    blocks = list(zip(names[mapping.slice_block_ops], mapping.block_mappings, strict=True))
    found = []
    for role, operands in (
        ("input window", blocks[: mapping.num_inputs]),
        ("output window", blocks[mapping.num_inputs :]),
    ):
        for place, (name, block) in enumerate(operands):
            if str(block.transformed_block_aval.memory_space) in ("default", "vmem"):
                shape, dtype = _block(block), block.array_aval.dtype
                buffers = _buffers(block, mapping)
                found.append(_allocation(chip, name, role, place, shape, dtype, buffers))
    scratch = zip(names[mapping.slice_scratch_ops], mapping.scratch_avals, strict=True)
    found += [
        _allocation(chip, name, "scratch", place, aval.shape, aval.dtype, 1)
        for place, (name, aval) in enumerate(scratch)
        if str(aval.memory_space) == "vmem"
    ]
    asked = getattr(call.params["compiler_params"], "vmem_limit_bytes", None)
    return Budget(chip, tuple(found), limit if asked is None else int(asked))


def scoped_limit(chip: str) -> int:
    """Return the compiler's default VMEM limit for one kernel, in bytes.

    Raises:
      ValueError: a chip whose limit is not known here.
    """
    if chip not in SCOPED_LIMITS:
        raise ValueError(f"unknown chip {chip!r}; one of {', '.join(SCOPED_LIMITS)}")
    return SCOPED_LIMITS[chip]


@lru_cache(maxsize=4096)
def tile(chip: str, dtype: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tile in which a window of that shape is stored, a number a dimension.

    Raises:
      ValueError: jax lists no such chip.
    """
    with _as(chip):
        tiling = tpu_info.infer_tiling(jax_core.ShapedArray(shape, jnp.dtype(dtype)))
    return tuple(int(extent or 1) for extent in tiling)


def stored_shape(chip: str, dtype: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape rounded up to whole tiles.

    Raises:
      ValueError: jax lists no such chip.
    """
    tiles = tile(chip, dtype, tuple(shape))
    return tuple(-(-extent // step) * step for extent, step in zip(shape, tiles, strict=True))


def _as(chip: str) -> Any:
    return as_device(chip_facts(chip).device_kind)


def _size(shape: Sequence[int], dtype: str) -> int:
    return math.prod(shape) * jnp.dtype(dtype).itemsize


def _allocation(
    chip: str, name: str, role: str, place: int, shape: Sequence[int], dtype: Any, buffers: int
) -> Allocation:
    plain = tuple(int(n) for n in shape)
    named = str(jnp.dtype(dtype))
    label = str(name).removesuffix("_ref")
    stored = stored_shape(chip, named, plain)
    return Allocation(label, role, place, plain, named, stored, buffers)


def _block(block: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in pallas_core._get_block_shape(block.block_shape))


def _buffers(block: Any, mapping: Any) -> int:
    if _is_constant(block, mapping.grid):
        return 1
    mode = block.pipeline_mode
    return 2 if mode is None else int(mode.buffer_count)


def _is_constant(block: Any, grid: Sequence[Any]) -> bool:
    """Whether no index of the block depends on an axis that has more than one program."""
    jaxpr = block.index_map_jaxpr.jaxpr
    moving = {
        variable
        for place, variable in enumerate(jaxpr.invars)
        if place >= len(grid) or grid[place] != 1
    }
    for eqn in jaxpr.eqns:
        if any(not isinstance(v, jax_core.Literal) and v in moving for v in eqn.invars):
            moving.update(eqn.outvars)
    return not any(not isinstance(v, jax_core.Literal) and v in moving for v in jaxpr.outvars)
