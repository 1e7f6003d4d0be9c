"""The truth of the BlockSpec sandbox: what one BlockSpec means, by the library's own functions.

The program in question copies an array block by block: one input and one output, both with the
same `BlockSpec`, on a grid that covers the array. Index arithmetic, padding, tiling and legality
are asked of the installed jax; the budget is `vmem`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core as jax_core
from jax._src import tree_util
from jax._src.pallas import core as pallas_core
from jax._src.pallas import hlo_interpreter
from jax.experimental import pallas as pl

from pallas_rungs.exhibits import blockspec_legality as legality
from pallas_rungs.exhibits import vmem
from pallas_rungs.exhibits.blockspec_sentence import sentence
from pallas_rungs.performance import vmem_budget

KINDS = ("blocked", "squeezed", "element")
"""Kinds of block dimension: `Blocked` (a plain int), `Squeezed` (None), `Element`."""

INDEXES = ("program", "scaled", "zero")
"""What the index map returns for a dimension: `i`, `i * block size`, or 0."""

DTYPES = ("float32", "bfloat16", "int8")


@dataclass(frozen=True)
class Dimension:
    """One dimension of the array and of its block, and what the index map returns for it."""

    array: int
    block: int
    kind: str
    index: str

    @property
    def size(self) -> int:
        """Elements of the window in this dimension; a squeezed dimension counts 1."""
        return 1 if self.kind == "squeezed" else self.block

    @property
    def programs(self) -> int:
        """Extent of the grid: as many programs as cover the dimension.

        An `Element` dimension whose index map returns the bare program index slides by one
        element, so it takes one program a position.
        """
        if self.kind == "element" and self.index == "program":
            return max(1, self.array - self.block + 1)
        return int(pl.cdiv(self.array, self.size))

    def block_dim(self) -> Any:
        """Return the entry of `block_shape` that a reader would write."""
        match self.kind:
            case "blocked":
                return self.block
            case "squeezed":
                return None
            case "element":
                return pl.Element(self.block)
        raise ValueError(f"unknown kind {self.kind!r}; the kinds are {', '.join(KINDS)}")

    def index_of(self, program: Any) -> Any:
        """Return what the index map returns for this dimension."""
        match self.index:
            case "program":
                return program
            case "scaled":
                return program * self.size
            case "zero":
                return 0
        raise ValueError(f"unknown index {self.index!r}; one of {', '.join(INDEXES)}")


@dataclass(frozen=True)
class Setting:
    """Everything that a reader dials."""

    dims: tuple[Dimension, ...]
    dtype: str
    chip: str
    step: int = 0

    @classmethod
    def from_json(cls, setting: dict[str, Any]) -> Setting:
        """Read a setting in the form in which pages and vectors hold it.

        Raises:
          ValueError: an unknown dtype or chip, or no dimension.
        """
        if setting["dtype"] not in DTYPES:
            raise ValueError(f"unknown dtype {setting['dtype']!r}; one of {', '.join(DTYPES)}")
        if not setting["dims"]:
            raise ValueError("a setting needs at least one dimension")
        vmem_budget.scoped_limit(setting["chip"])
        dims = tuple(Dimension(**dim) for dim in setting["dims"])
        return cls(dims, setting["dtype"], setting["chip"], setting["step"])

    def to_json(self) -> dict[str, Any]:
        """Return the setting as a JSON-able dictionary."""
        return {**asdict(self), "dims": [asdict(dim) for dim in self.dims]}

    @property
    def array_shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return tuple(dim.array for dim in self.dims)

    @property
    def grid(self) -> tuple[int, ...]:
        """The grid: one extent a dimension of the array."""
        return tuple(dim.programs for dim in self.dims)

    def block_spec(self) -> pl.BlockSpec:
        """The BlockSpec of the input, and of the output."""
        return pl.BlockSpec(tuple(dim.block_dim() for dim in self.dims), self.index_map())

    def program(self, **options: Any) -> Callable[[jax.Array], jax.Array]:
        """Return the call that copies an array of this shape and dtype block by block.

        Args:
          **options: more arguments of `pallas_call`, such as `interpret`.
        """
        call: Callable[[jax.Array], jax.Array] = pl.pallas_call(
            legality.copy_kernel,
            grid=self.grid,
            in_specs=[self.block_spec()],
            out_specs=self.block_spec(),
            out_shape=jax.ShapeDtypeStruct(self.array_shape, self.dtype),
            **options,
        )
        return call

    def index_map(self) -> Callable[..., tuple[Any, ...]]:
        """The index map: program indices -> one index a dimension."""
        dims = self.dims

        def index_map(*program: Any) -> tuple[Any, ...]:
            return tuple(dim.index_of(i) for dim, i in zip(dims, program, strict=True))

        return index_map


@lru_cache(maxsize=1024)
def block_mapping(setting: Setting) -> pallas_core.BlockMapping:
    """Return the library's canonical form of the setting's BlockSpec, its index map traced."""
    rank = len(setting.dims)
    index = jax_core.ShapedArray((), jnp.dtype("int32"))
    return setting.block_spec().to_block_mapping(
        "args[0]",
        jax_core.ShapedArray(setting.array_shape, jnp.dtype(setting.dtype)),
        index_map_avals=(index,) * rank,
        index_map_tree=tree_util.tree_structure(((0,) * rank, {})),
        grid=setting.grid,
        vmapped_dims=(),
    )


def starts(mapping: pallas_core.BlockMapping, program: tuple[int, ...]) -> list[int]:
    """Return the element at which the program's block starts, a number a dimension."""
    return [int(start) for start in mapping.compute_start_indices_interpret(program)]


@lru_cache(maxsize=1024)
def padded_shape(array: tuple[int, ...], window: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which interpret mode pads the array before it cuts blocks."""
    padded = jax.eval_shape(
        lambda value: hlo_interpreter._pad_to_block_dimension(value, window),
        jax.ShapeDtypeStruct(array, jnp.float32),
    )
    return tuple(padded.shape)


def program_at(grid: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Return the program indices of the step-th program; the last grid axis runs fastest."""
    return tuple(int(i) for i in np.unravel_index(step, grid))


def covered(dim: Dimension, padded: int) -> bool:
    """Tell whether the windows that interpret mode writes reach every element of the dimension."""
    reached = 0
    for program in range(dim.programs):
        start = dim.index_of(program) * (dim.size if dim.kind == "blocked" else 1)
        start = min(start, padded - dim.size)
        if start > reached:
            return False
        reached = max(reached, start + dim.size)
    return reached >= dim.array


def derive(setting: Setting) -> dict[str, Any]:
    """Compute all that the sandbox shows.

    Returns:
      A JSON-able dictionary. Lengths and positions are in elements, sizes in bytes; `read` is
      where interpret mode reads when a block starts outside the array (its slice is clamped);
      `inFlight` counts both windows with their buffers, tile padding included.
    """
    mapping = block_mapping(Setting(setting.dims, setting.dtype, setting.chip))
    grid = setting.grid
    programs = math.prod(grid)
    step = min(max(setting.step, 0), programs - 1)
    program = program_at(grid, step)
    start = starts(mapping, program)
    last = starts(mapping, tuple(extent - 1 for extent in grid))
    first = starts(mapping, (0,) * len(grid))
    index = [int(i) for i in jax_core.jaxpr_as_fun(mapping.index_map_jaxpr)(*program)]

    array = setting.array_shape
    window = list(pallas_core._get_block_shape(mapping.block_shape))
    padded = list(padded_shape(array, tuple(window)))
    valid = [max(0, min(s + w, n) - s) for s, w, n in zip(start, window, array, strict=True)]
    strays = any(s >= n for s, n in zip(last, array, strict=True))
    reach = "outside" if 0 in valid else "inside" if valid == window else "overhang"

    buffers = 1 if first == last or mapping.has_trivial_window() else 2
    memory = vmem.in_flight(setting.chip, setting.dtype, array, tuple(window), buffers)
    refusals = [{"rung": "simulate", "kind": "outside", "words": ""}] if strays else []
    refusals += legality.refusals(setting.chip, mapping)
    if memory["budget"] == "over":
        refusals.append({"rung": "compile", "kind": "vmem", "words": ""})
    result: dict[str, Any] = {
        "grid": list(grid),
        "programs": programs,
        "step": step,
        "program": list(program),
        "index": index,
        "start": start,
        "read": [min(max(s, 0), p - w) for s, p, w in zip(start, padded, window, strict=True)],
        "lastStart": last,
        "window": window,
        "ref": list(mapping.block_aval.shape),
        "padded": padded,
        "valid": valid,
        "reach": reach,
        "strays": strays,
        "covers": all(
            covered(dim, extent) for dim, extent in zip(setting.dims, padded, strict=True)
        ),
        "buffers": buffers,
        **memory,
        "refusals": refusals,
    }
    return {**result, "sentence": sentence(setting.chip, array, result)}
