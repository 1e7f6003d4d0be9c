"""What the index maps of a kernel do over its grid, read off the traced program.

A map that depends on a prefetched table, a grid whose lengths are known at run time, blocks that
are placed by elements, and very large grids are left out: nothing is said of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from pallas_rungs.ladder.findings import (
    NOT_WRITTEN,
    PAST_THE_END,
    SWAPPED,
    WITHOUT_AXIS,
    Finding,
)

_LARGEST_GRID = 1 << 16
_AXES = "ijklmn"


@dataclass(frozen=True)
class Tiling:
    """How an array is cut into blocks, and who writes them.

    Attributes:
      shape: the array's shape.
      block: the block's shape, 1 along axes that the body does not see.
      writers: block index → the last program that writes the block, as a point of the grid.
    """

    shape: tuple[int, ...]
    block: tuple[int, ...]
    writers: dict[tuple[int, ...], tuple[int, ...]]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many blocks there are along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.shape, self.block, strict=True))

    def place_of(self, index: tuple[int, ...]) -> str:
        """Say in which block an element is, where in the block, and which program writes it."""
        block = tuple(i // b for i, b in zip(index, self.block, strict=True))
        within = tuple(i % b for i, b in zip(index, self.block, strict=True))
        told = (
            f"block {block} of {' × '.join(map(str, self.counts))} blocks of {self.block}, "
            f"element {within} in it"
        )
        writer = self.writers.get(block)
        return f"{told}; " + (
            f"program {writer} writes it last" if writer else "no program writes it"
        )


@dataclass(frozen=True, eq=False)
class _Map:
    """An operand's index map, evaluated over the grid.

    Attributes:
      name: what the operand is called, e.g. `"in_specs[0]"`.
      shape: the array's shape.
      block: the block's shape.
      grid: lengths of the grid's axes.
      indices: the block indices, of shape (*grid, rank).
    """

    name: str
    shape: tuple[int, ...]
    block: tuple[int, ...]
    grid: tuple[int, ...]
    indices: np.ndarray[Any, Any]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        return Tiling(self.shape, self.block, {}).counts

    @cached_property
    def follows(self) -> tuple[int | None, ...]:
        """For each axis of the array the grid axis that its block index is; None for none."""
        points = np.moveaxis(np.indices(self.grid), 0, -1)
        return tuple(
            next(
                (
                    axis
                    for axis, length in enumerate(self.grid)
                    if length > 1 and np.array_equal(self.indices[..., dim], points[..., axis])
                ),
                None,
            )
            for dim in range(len(self.shape))
        )

    def ignores(self, axis: int) -> bool:
        """True when the block is the same at every step along a grid axis."""
        first = np.take(self.indices, [0], axis=axis)
        return bool((self.indices == first).all())

    def text(self) -> str:
        """The map as it may have been written, e.g. `"(j, i)"`."""
        words = []
        for dim, axis in enumerate(self.follows):
            values = self.indices[..., dim]
            constant = str(values.flat[0]) if (values == values.flat[0]).all() else "…"
            words.append(constant if axis is None else _axis(axis))
        return f"({', '.join(words)}{',' if len(words) == 1 else ''})"

    def writers(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        return {
            tuple(map(int, self.indices[point])): point
            for point in np.ndindex(*self.grid)
            if self._inside(self.indices[point])
        }

    def past_the_end(self) -> tuple[int, int] | None:
        """The axis and the index of the block farthest past the end, if there is one."""
        for dim, count in enumerate(self.counts):
            farthest = int(self.indices[..., dim].max())
            if farthest >= count:
                return dim, farthest
        return None

    def _inside(self, index: np.ndarray[Any, Any]) -> bool:
        return all(0 <= int(i) < count for i, count in zip(index, self.counts, strict=True))


@dataclass(frozen=True)
class IndexMaps:
    """What is known of the index maps of a program's kernels.

    Attributes:
      findings: what about them explains wrong numbers.
      tilings: how the outputs are cut, by the array's shape; the last kernel's counts.
    """

    findings: tuple[Finding, ...] = ()
    tilings: dict[tuple[int, ...], Tiling] = field(default_factory=dict)

    @classmethod
    def of(cls, kernels: Sequence[Any], accumulates: bool) -> IndexMaps:
        """Evaluate the maps.

        Args:
          kernels: the equations that launch a kernel.
          accumulates: some body reads back what it wrote.
        """
        found: list[Finding] = []
        cut: dict[tuple[int, ...], Tiling] = {}
        for kernel in kernels:
            inputs, outputs = _maps(kernel)
            aliased = {out for _, out in kernel.params.get("input_output_aliases") or ()}
            for place, output in outputs.items():
                found += _swapped(output, [m for m in inputs.values() if m.shape == output.shape])
                if place not in aliased:
                    overwrites = not accumulates and _writes_whole_block(kernel, place)
                    found += _not_covered(output, overwrites)
                if math.prod(output.counts) > 1:
                    cut[output.shape] = Tiling(output.shape, output.block, output.writers())
            found += [f for m in (*inputs.values(), *outputs.values()) for f in _past_the_end(m)]
        return cls(tuple(dict.fromkeys(found)), cut)


def _swapped(output: _Map, inputs: Sequence[_Map]) -> Iterator[Finding]:
    own = output.follows
    for operand in inputs:
        theirs = operand.follows
        axes = [axis for axis in own if axis is not None]
        same = sorted(axes) == sorted(axis for axis in theirs if axis is not None)
        if same and len(axes) > 1 and own != theirs and operand.block == output.block:
            yield Finding(
                SWAPPED,
                f"the index map of {operand.name} returns {operand.text()} where that of "
                f"{output.name} returns {output.text()}",
            )


def _writes_whole_block(kernel: Any, place: int) -> bool:
    """True for a body that stores to all of an output's block, whatever it decides."""
    mapping, body = kernel.params["grid_mapping"], kernel.params["jaxpr"]
    ref = body.invars[mapping.num_index_operands + mapping.num_inputs + place]
    return any(
        eqn.primitive.name == "swap"
        and eqn.invars[0] is ref
        and eqn.invars[1].aval.shape == ref.aval.shape
        for eqn in body.eqns
    )


def _not_covered(output: _Map, overwrites: bool) -> Iterator[Finding]:
    """Say which axis the map forgets, where the body overwrites the block, or what it misses."""
    total = math.prod(output.counts)
    missing = total - len(output.writers())
    unwritten = f"{missing} of its {total} blocks {'is' if missing == 1 else 'are'} never written"
    left_out = [a for a, length in enumerate(output.grid) if length > 1 and output.ignores(a)]
    if left_out and overwrites:
        axis = left_out[0]
        told = (
            f"the index map of {output.name} returns {output.text()}, without the grid's axis "
            f"{axis} ({_axis(axis)}): its {output.grid[axis]} programs write the same block, and "
            "the last one's values stay"
        )
        yield Finding(WITHOUT_AXIS, told + (f"; {unwritten}" if missing else ""))
    elif missing:
        yield Finding(
            NOT_WRITTEN,
            f"the index map of {output.name} over the grid {output.grid} does not reach every "
            f"block of {list(output.shape)}: {unwritten}",
        )


def _past_the_end(operand: _Map) -> Iterator[Finding]:
    if (past := operand.past_the_end()) is not None:
        dim, index = past
        yield Finding(
            PAST_THE_END,
            f"the index map of {operand.name} returns block {index} along axis {dim}, where the "
            f"last block is {operand.counts[dim] - 1}",
        )


def _maps(kernel: Any) -> tuple[dict[int, _Map], dict[int, _Map]]:
    """Return the maps of a kernel's inputs and outputs that can be evaluated, by position."""
    mapping = kernel.params.get("grid_mapping")
    grid = tuple(getattr(mapping, "grid", ()))
    static = bool(grid) and all(type(length) is int and length > 0 for length in grid)
    if not static or mapping.num_index_operands or math.prod(grid) > _LARGEST_GRID:
        return {}, {}
    inputs: dict[int, _Map] = {}
    outputs: dict[int, _Map] = {}
    for place, block in enumerate(mapping.block_mappings):
        is_input = place < mapping.num_inputs
        side, at = (inputs, place) if is_input else (outputs, place - mapping.num_inputs)
        name = f"in_specs[{at}]" if is_input else f"out_specs[{at}]"
        if (evaluated := _evaluated(name, block, grid)) is not None:
            side[at] = evaluated
    if len(mapping.block_mappings) - mapping.num_inputs == 1 and 0 in outputs:
        outputs[0] = _Map("out_specs", *list(vars(outputs[0]).values())[1:5])
    return inputs, outputs


def _evaluated(name: str, mapping: Any, grid: tuple[int, ...]) -> _Map | None:
    block = _block(mapping.block_shape or ())
    shape = tuple(mapping.array_aval.shape)
    map_jaxpr = mapping.index_map_jaxpr
    if block is None or len(block) != len(shape) or len(map_jaxpr.invars) != len(grid):
        return None
    points = np.indices(grid, dtype=np.int32).reshape(len(grid), -1)
    if not map_jaxpr.eqns:  # its results are its arguments and constants
        given = dict(zip(map_jaxpr.invars, points, strict=True))
        columns = [v.val if hasattr(v, "val") else given[v] for v in map_jaxpr.outvars]
        return _stacked(name, shape, block, grid, columns)
    try:
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            columns = jax.jit(jax.vmap(jaxpr_as_fun(map_jaxpr)))(*points)
    except Exception:  # a map with effects, or with an operation that has no rule for vmap
        return None
    return _stacked(name, shape, block, grid, columns)


def _stacked(
    name: str,
    shape: tuple[int, ...],
    block: tuple[int, ...],
    grid: tuple[int, ...],
    columns: Sequence[Any],
) -> _Map:
    """Return the map whose block indices along each axis of the array are these columns."""
    indices = np.stack([np.broadcast_to(c, math.prod(grid)) for c in columns], axis=-1)
    return _Map(name, shape, block, grid, indices.reshape(*grid, len(shape)))


def _block(dims: Sequence[Any]) -> tuple[int, ...] | None:
    """Return the block's shape; None where a dimension is not cut into blocks of one size."""
    sizes = []
    for dim in dims:
        kind = type(dim).__name__
        size = 1 if dim is None or kind == "Squeezed" else getattr(dim, "block_size", dim)
        if kind not in ("Blocked", "Squeezed", "int", "NoneType") or not isinstance(size, int):
            return None
        sizes.append(size)
    return tuple(sizes)


def _axis(axis: int) -> str:
    return _AXES[axis] if axis < len(_AXES) else f"axis {axis}"
