"""How long a block stays in fast memory, and how often it is moved, read from the index maps.

A block stays while the programs, taken in the order of the loop nest, ask for it one after the
other. When the next program asks for another one, an input block is replaced and an output block
is carried away. That is the schedule of a pipeline that moves what changes and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from pallas_rungs.figures.calls import Operand, read_call


@dataclass(frozen=True)
class Stay:
    """One block, and the steps of the loop nest through which it stays.

    Attributes:
        first: the first step that has it.
        last: the last step that has it without a break.
        block: index of the block along each dimension.
        elements: how many elements of the array it covers; what hangs over the edge is not counted.
    """

    first: int
    last: int
    block: tuple[int, ...]
    elements: int

    @property
    def steps(self) -> range:
        """The steps, in order."""
        return range(self.first, self.last + 1)


def stays(operand: Operand) -> tuple[Stay, ...]:
    """Return the stays of an operand's blocks in order; a block that comes back has several."""
    starts = operand.starts
    new = np.flatnonzero((starts[1:] != starts[:-1]).any(axis=1)) + 1
    firsts = [0, *new.tolist()]
    lasts = [*(new - 1).tolist(), len(starts) - 1]
    return tuple(
        Stay(first, last, *_block(operand, starts[first].tolist()))
        for first, last in zip(firsts, lasts, strict=True)
    )


def _block(operand: Operand, start: list[int]) -> tuple[tuple[int, ...], int]:
    index = tuple(s // b for s, b in zip(start, operand.block, strict=True))
    inside = (
        max(0, min(b, n - s)) for s, b, n in zip(start, operand.block, operand.shape, strict=True)
    )
    return index, math.prod(inside)


def block_moves(function: Callable[..., Any], *args: Any, **options: Any) -> dict[str, int]:
    """Count for each operand of a `pallas_call` how often its block changes, the first one too.

    For an input that is how many blocks have to be fetched, for an output how many have to be
    written.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        options: `names`, `index` and `scalars`, as `read_call` takes them.

    Raises:
        ValueError: as `read_call`.
    """
    call = read_call(function, *args, **options)
    return {operand.name: len(stays(operand)) for operand in call.operands}


def times_moved(function: Callable[..., Any], *args: Any, **options: Any) -> dict[str, float]:
    """Count how often each operand of a `pallas_call` crosses between large and fast memory.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        options: `names`, `index` and `scalars`, as `read_call` takes them.

    Returns:
        Name of each operand → elements moved over elements of the array. 1.0 is once.

    Raises:
        ValueError: as `read_call`.
    """
    call = read_call(function, *args, **options)
    return {
        operand.name: sum(stay.elements for stay in stays(operand)) / math.prod(operand.shape)
        for operand in call.operands
    }


def bytes_moved(function: Callable[..., Any], *args: Any, **options: Any) -> dict[str, int]:
    """Count, for each input and output of a call, the bytes between large and fast memory.

    What hangs over the edge of an array is not counted.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        options: `names`, `index` and `scalars`, as `read_call` takes them.

    Raises:
        ValueError: as `read_call`.
    """
    call = read_call(function, *args, **options)
    return {
        operand.name: sum(stay.elements for stay in stays(operand))
        * jnp.dtype(operand.dtype).itemsize
        for operand in call.operands
    }


def bytes_fetched(
    function: Callable[..., Any], *args: Any, **options: Any
) -> dict[str, tuple[int, int]]:
    """Count, for each input of a call, how often a block is fetched and how many bytes that is.

    Blocks are counted whole, overhang included.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        options: `names`, `index` and `scalars`, as `read_call` takes them.

    Returns:
        Name of the input → (fetches, bytes).

    Raises:
        ValueError: as `read_call`.
    """
    call = read_call(function, *args, **options)
    counted = {}
    for operand in call.operands:
        if operand.role == "input":
            times = len(stays(operand))
            size = math.prod(operand.block) * jnp.dtype(operand.dtype).itemsize
            counted[operand.name] = (times, times * size)
    return counted
