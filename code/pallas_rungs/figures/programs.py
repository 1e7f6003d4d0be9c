"""Words for sets of program ids: short enough to stand in a block."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

type Program = tuple[int, ...]


def program_name(program: Program) -> str:
    """``3`` for a grid of one axis, ``(0, 1)`` for more, ``()`` for no grid."""
    return str(program[0]) if len(program) == 1 else f"({', '.join(map(str, program))})"


def program_pattern(programs: Collection[Program], grid: Sequence[int]) -> str:
    """Name a set of programs: one id, a product such as ``(0, *)``, a range, or a count.

    ``*`` stands for every id of an axis with more than one.

    Raises:
        ValueError: if the set is empty.
    """
    if not programs:
        raise ValueError("no programs to name")
    if len(programs) == 1:
        return program_name(next(iter(programs)))
    axes = [sorted({p[a] for p in programs}) for a in range(len(grid))]
    if math.prod(map(len, axes)) != len(set(programs)):
        return f"{len(programs)} programs"
    names = []
    for ids, size in zip(axes, grid, strict=True):
        if len(ids) == 1:
            names.append(str(ids[0]))
        elif len(ids) == size:
            names.append("*")
        elif ids == list(range(ids[0], ids[-1] + 1)):
            names.append(f"{ids[0]}–{ids[-1]}")
        else:
            return f"{len(programs)} programs"
    if len(names) == 1:
        return "all" if names[0] == "*" else names[0]
    return f"({', '.join(names)})"


def runs(numbers: Collection[int]) -> str:
    """Write numbers compactly: ``0``, ``0–3``, ``0, 4, 8``, ``0, 4, … 28``."""
    ordered = sorted(numbers)
    if len(ordered) > 1 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"{ordered[0]}–{ordered[-1]}"
    if len(ordered) > 3:
        return f"{ordered[0]}, {ordered[1]}, … {ordered[-1]}"
    return ", ".join(map(str, ordered))
