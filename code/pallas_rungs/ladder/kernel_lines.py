"""From the operation that an error names to the line of the kernel that asked for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax

from pallas_rungs.ladder import swap
from pallas_rungs.ladder.features import indexers
from pallas_rungs.ladder.source_frames import line_of
from pallas_rungs.ladder.verdict import Frame

_NAMED = re.compile(
    r"Unimplemented primitive in Pallas [\w ]+ lowering(?: for \w+)?: (\w+)"
    r"|translation rule for primitive '(\w+)'"
)


def line_asking_for(message: str, kernels: list[Any]) -> Frame | None:
    """Return the user's line behind the operation that `message` names.

    Operations of jax's own functions are traced once and then reused without the line that called
    them; that of the call stands in.

    Args:
      message: what a lowering said about an operation that it lacks.
      kernels: the equations that launch a kernel.
    """
    match = _NAMED.search(message)
    if match is None:
        return None
    name = match[1] or match[2]
    return next(
        (
            frame
            for kernel in kernels
            for body in swap.sub_jaxprs(kernel.params)
            if (frame := _line_of(body, name)) is not None
        ),
        None,
    )


def _line_of(jaxpr: Any, name: str) -> Frame | None:
    """Return the innermost user's line of the first equation of that name, at any depth."""
    for eqn in jaxpr.eqns:
        inner = [i for i in swap.sub_jaxprs(eqn.params) if _uses(i, name)]
        for body in inner:
            if frame := _line_of(body, name):
                return frame
        if (inner or eqn.primitive.name == name) and (frame := line_of(eqn.source_info)):
            return frame
    return None


def _uses(jaxpr: Any, name: str) -> bool:
    return any(eqn.primitive.name == name for eqn in swap.equations(jaxpr))


_PAST_THE_END = re.compile(
    r"Out-of-bounds (?:masked )?(?P<kind>read|write|swap|store) of .*?"
    r"\[\((?P<place>.*)\)\] but buffer has shape \((?P<shape>[\d, ]*)\)"
)
_SLICE = re.compile(r"slice\((\d+), (\d+), (\d+)\)|(-?\d+)")


def line_reaching_past(message: str, kernels: list[Any]) -> Frame | None:
    """Return the user's line that reads or writes past the end of a ref, as `message` tells.

    The simulator names the place and the buffer's shape and not the line. The accesses of that kind
    to a ref of that shape, of that size and at a place that is computed, are looked for; where they
    stand in several lines nobody knows which it was.

    Args:
      message: what the simulator said.
      kernels: the equations that launch a kernel.
    """
    match = _PAST_THE_END.search(message)
    if match is None:
        return None
    shape = tuple(int(size) for size in match["shape"].split(",") if size.strip())
    sizes = tuple(
        -(-(int(stop) - int(start)) // int(step)) if start else 1
        for start, stop, step, _ in _SLICE.findall(match["place"])
    )
    reads = match["kind"] == "read"
    found = {
        frame
        for kernel in kernels
        for body in swap.sub_jaxprs(kernel.params)
        for eqn in swap.equations(body)
        for indexer in _indexers_of(eqn, reads)
        if tuple(indexer.shape) == shape
        and _may_take(indexer, sizes)
        and (frame := line_of(eqn.source_info)) is not None
    }
    return found.pop() if len(found) == 1 else None


def _indexers_of(eqn: Any, reads: bool) -> Iterator[Any]:
    """Yield the indexers by which an operation reads, or writes, a part of a ref."""
    name = eqn.primitive.name
    if name == "dma_start":
        source, target, *_ = jax.tree.unflatten(eqn.params["tree"], list(eqn.invars))
        yield from indexers(source if reads else target)
    elif name in (("get",) if reads else ("swap", "addupdate")):
        first = 1 if reads else 2
        yield from indexers(jax.tree.unflatten(eqn.params["tree"], list(eqn.invars[first:])))


def _may_take(indexer: Any, sizes: tuple[int, ...]) -> bool:
    """Whether an indexer takes so many elements along each axis of its ref, or may take them.

    A size that is computed in the kernel, as that of a ragged last block is, may be any.
    """
    taken = [index.size if type(index).__name__ == "Slice" else 1 for index in indexer.indices]
    return len(taken) == len(sizes) and all(
        size == told for size, told in zip(taken, sizes, strict=True) if isinstance(size, int)
    )
