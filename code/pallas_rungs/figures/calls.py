"""Read from a traced `pallas_call` which block of each operand every program is given.

Nothing is computed here by a rule of our own: the index maps are evaluated by the library's
`compute_start_indices_interpret`, for all programs of the grid at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax._src.pallas import core as pallas_core

MOST_PROGRAMS = 4096
"""A figure of more programs than this says nothing; reading one is refused."""


@dataclass(frozen=True)
class Operand:
    """One input or output of a call, and the block of it that each program is given.

    Attributes:
        name: what the kernel calls it, without ``_ref``.
        role: ``input`` or ``output``.
        shape: shape of the whole array.
        dtype: short name of its element type, e.g. ``float32``.
        block: block size in elements along each dimension; 1 where the dimension is squeezed.
        squeezed: whether each dimension is absent from the kernel's ref.
        space: memory space if the call names one (``any``, ``smem``, …), else an empty string.
        starts: int array (programs, dimensions): first element of each program's block.
    """

    name: str
    role: str
    shape: tuple[int, ...]
    dtype: str
    block: tuple[int, ...]
    squeezed: tuple[bool, ...]
    space: str
    starts: np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Call:
    """A call's grid and operands.

    Attributes:
        grid: number of programs along each axis.
        programs: program ids in the order of a loop nest, last axis fastest.
        operands: inputs, then outputs.
    """

    grid: tuple[int, ...]
    programs: tuple[tuple[int, ...], ...]
    operands: tuple[Operand, ...]


def _calls_in(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "pallas_call":
            yield equation
            continue
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(inner, "eqns"):
                    yield from _calls_in(inner)
                elif hasattr(inner, "jaxpr"):
                    yield from _calls_in(inner.jaxpr)


def read_call(
    function: Callable[..., Any],
    *args: Any,
    index: int | None = None,
    names: Sequence[str] | None = None,
    scalars: Sequence[Any] = (),
) -> Call:
    """Trace `function` on `args` and read the grid mapping of its `pallas_call`.

    Args:
        function: calls `pallas_call`; it is traced, not run.
        args: its arguments: arrays or `jax.ShapeDtypeStruct`.
        index: which `pallas_call`, from 0, if there are several.
        names: names for inputs and outputs; the kernel's own argument names if None.
        scalars: values of the prefetched scalars, which the index maps may read.

    Raises:
        ValueError: if there is no `pallas_call`, or several and `index` is None; if the grid is
            dynamic or too large for a picture; if `names` or `scalars` do not fit.
    """
    found = list(_calls_in(jax.make_jaxpr(function)(*args).jaxpr))
    if not found:
        raise ValueError("the function calls no pallas_call, so there is no grid to draw")
    if index is None and len(found) > 1:
        raise ValueError(
            f"the function calls pallas_call {len(found)} times; say which with index=0…"
        )
    if index is not None and not 0 <= index < len(found):
        raise ValueError(f"index is {index}, but there are {len(found)} pallas_calls")
    equation = found[index or 0]
    mapping: Any = equation.params["grid_mapping"]
    if mapping.num_dynamic_grid_bounds:
        raise ValueError("the grid is dynamic; give the grid static sizes to draw it")
    if len(scalars) != mapping.num_index_operands:
        raise ValueError(
            f"the call prefetches {mapping.num_index_operands} scalar operands and scalars= holds "
            f"{len(scalars)}; the index maps cannot be evaluated without their values"
        )
    grid = tuple(int(n) for n in mapping.grid)
    if math.prod(grid) > MOST_PROGRAMS:
        raise ValueError(
            f"grid {grid} has {math.prod(grid)} programs; a figure of more than {MOST_PROGRAMS} "
            "cannot be read. Draw a smaller case."
        )
    programs = tuple(np.ndindex(*grid))
    names = _names(equation, mapping) if names is None else names
    if len(names) != len(mapping.block_mappings):
        raise ValueError(
            f"names holds {len(names)} names, but the call has {len(mapping.block_mappings)} "
            "inputs and outputs"
        )
    starts = starts_of(mapping, programs, scalars)
    operands = tuple(
        _operand(block_mapping, name, i < mapping.num_inputs, found)
        for i, (block_mapping, name, found) in enumerate(
            zip(mapping.block_mappings, names, starts, strict=True)
        )
    )
    return Call(grid=grid, programs=programs, operands=operands)


def _names(equation: Any, mapping: Any) -> tuple[str, ...]:
    refs = equation.params["jaxpr"].debug_info.arg_names or ()
    wanted = refs[mapping.slice_block_ops]
    if len(wanted) != len(mapping.block_mappings) or not all(wanted):
        return tuple(f"operand {i}" for i in range(len(mapping.block_mappings)))
    return tuple(str(name).removesuffix("_ref") for name in wanted)


def starts_of(
    mapping: Any, programs: Sequence[tuple[int, ...]], scalars: Sequence[Any]
) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """First element of each operand's block for each program, by the library's own arithmetic.

    The index maps of all operands are compiled together: that is most of what a figure costs.

    Returns:
        For each operand, integers of shape (programs, dimensions of the array).
    """
    grid = mapping.grid

    def start(*ids: Any) -> Any:
        axes = tuple(
            pallas_core.GridAxis(i, n)
            for axis, (i, n) in enumerate(zip(ids, grid, strict=True))
            if axis not in mapping.vmapped_dims
        )
        with pallas_core.grid_env(axes):
            found = [
                block_mapping.compute_start_indices_interpret(ids, *scalars)
                for block_mapping in mapping.block_mappings
            ]
        return [tuple(jax.numpy.asarray(s, "int32") for s in starts) for starts in found]

    if not grid:
        return [np.array([[int(s) for s in starts]], np.int64).reshape(1, -1) for starts in start()]
    columns = np.array(programs, np.int32).T
    found = jax.jit(jax.vmap(start))(*columns)
    return [np.stack([np.asarray(s) for s in starts], axis=1).astype(np.int64) for starts in found]


def _operand(
    block_mapping: Any,
    name: str,
    is_input: bool,
    starts: np.ndarray[Any, np.dtype[np.int64]],
) -> Operand:
    kinds = block_mapping.block_shape
    aval = block_mapping.array_aval
    space = str(block_mapping.transformed_block_aval.memory_space)
    return Operand(
        name=name,
        role="input" if is_input else "output",
        shape=tuple(int(n) for n in aval.shape),
        dtype=str(aval.dtype),
        block=tuple(int(n) for n in pallas_core._get_block_shape(kinds)),
        squeezed=tuple(isinstance(kind, pallas_core.Squeezed) for kind in kinds),
        space="" if space == "default" else space,
        starts=starts,
    )
