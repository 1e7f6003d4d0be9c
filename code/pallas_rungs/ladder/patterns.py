"""Where in an array the wrong values are, in words: patterns that point at a cause."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Agree = Callable[[Array, Array], bool]
"""Whether a part of the result is another part of the reference, within the tolerance."""

_CHANCE = 50
"""One value in so many may be right by chance where all are wrong."""

_MOST_BLOCKS = 1024


def patterns_of(
    got: Array,
    want: Array,
    differs: Array,
    block: tuple[int, ...] = (),
    agree: Agree = np.array_equal,
) -> tuple[str, ...]:
    """Return what is regular about the values that differ; empty when nothing is.

    Args:
      got: the result.
      want: the reference, of the same shape.
      differs: true where they differ.
      block: shape of the blocks that the result was written in; empty for one block, or unknown.
      agree: whether two parts of the same shape agree.
    """
    nan = differs & np.isnan(got)
    found = []
    if nan.any():
        found.append(_place(nan, "NaN", block))
    elif not got.any():
        found.append("zero everywhere")
    else:
        found += [_place(differs, "wrong", block), _repeats(got, want)]
    if block:
        found.append(_moved(got, want, differs & ~nan, block, agree))
    return tuple(filter(None, found))


def _place(where: Array, what: str, block: tuple[int, ...]) -> str:
    if where.all():
        return f"{what} everywhere"
    for axis in range(where.ndim):
        others = tuple(other for other in range(where.ndim) if other != axis)
        any_there = where.any(axis=others)
        right = np.count_nonzero(~where, axis=others)[any_there]
        if any_there.all() or (right > where.size // where.shape[axis] // _CHANCE).any():
            continue
        first, size = int(np.argmax(any_there)), any_there.size
        if any_there[first:].all():
            return f"{what} to the end of axis {axis}, from {first} of {size}"
        count = int(any_there.sum())
        return f"{what} in whole slices of axis {axis}, {count} of {size}, others right"
    if block and (told := _whole_blocks(where, what, block)):
        return told
    return f"{what} everywhere, but for {_counted(where)}" if _nearly_all(where) else ""


def _nearly_all(where: Array) -> bool:
    """True where all are marked but for as few as chance would have it."""
    return where.size - int(np.count_nonzero(where)) <= where.size // _CHANCE


def _counted(where: Array) -> str:
    right = where.size - int(np.count_nonzero(where))
    return "1 value" if right == 1 else f"{right} values"


def _whole_blocks(where: Array, what: str, block: tuple[int, ...]) -> str:
    """Say that blocks are wrong as wholes; empty where some is wrong in part, or none is right."""
    marked = {index: part for index, part in _blocks(where, block) if part.any()}
    total = math.prod(_counts(where.shape, block))
    if total > _MOST_BLOCKS or len(marked) == total or not all(map(_nearly_all, marked.values())):
        return ""
    right = [index for index, _ in _blocks(where, block) if index not in marked]
    told = f"{what} in whole blocks of {block}, {len(marked)} of {total}"
    on_diagonal = len(set(_counts(where.shape, block))) == 1 and all(
        (index in right) == (len(set(index)) == 1)
        for index in np.ndindex(*_counts(where.shape, block))
    )
    return f"{told}, those off the diagonal" if on_diagonal and len(right) > 1 else told


def _moved(got: Array, want: Array, wrong: Array, block: tuple[int, ...], agree: Agree) -> str:
    """Say that blocks hold what belongs to others: all of them exchanged, or the first one."""
    counts = _counts(got.shape, block)
    if math.prod(counts) > _MOST_BLOCKS or math.prod(counts) < 2:
        return ""
    results, wanted = dict(_blocks(got, block)), dict(_blocks(want, block))
    sick = [index for index, part in _blocks(wrong, block) if _nearly_all(part)]
    if not sick:
        return ""

    def holds(index: tuple[int, ...], other: tuple[int, ...]) -> bool:
        there = wanted[other]
        return results[index].shape == there.shape and agree(results[index], there)

    for one, two in itertools.combinations(range(len(counts)), 2):
        if counts[one] != counts[two]:
            continue
        partner = {index: _exchanged(index, one, two) for index in sick}
        if all(index != partner[index] and holds(index, partner[index]) for index in sick):
            example = sick[0]
            return (
                f"blocks exchanged along axes {one} and {two}: block {example} holds what belongs "
                f"to block {partner[example]}"
            )
    sources = [other for other in wanted if holds(sick[0], other)]
    if len(sources) != 1:
        return ""
    return f"blocks displaced: block {sick[0]} holds what belongs to block {sources[0]}"


def _exchanged(index: tuple[int, ...], one: int, two: int) -> tuple[int, ...]:
    other = list(index)
    other[one], other[two] = index[two], index[one]
    return tuple(other)


def _counts(shape: tuple[int, ...], block: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-size // step) for size, step in zip(shape, block, strict=True))


def _blocks(array: Array, block: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield the blocks of an array with their indices, the last ones cut where it ends."""
    for index in np.ndindex(*_counts(array.shape, block)):
        place = tuple(slice(i * b, (i + 1) * b) for i, b in zip(index, block, strict=True))
        yield index, array[place]


def _repeats(got: Array, want: Array) -> str:
    """Say along which axis the second half is the first once more, where it should not be."""
    for axis in range(got.ndim):
        if got.shape[axis] < 2 or got.shape[axis] % 2:
            continue
        first, second = np.split(got, 2, axis=axis)
        wanted_first, wanted_second = np.split(want, 2, axis=axis)
        if np.array_equal(first, second) and not np.array_equal(wanted_first, wanted_second):
            return f"the second half of axis {axis} repeats the first"
    return ""
