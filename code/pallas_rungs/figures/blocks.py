"""Which program owns which block: a picture of a call's grid mapping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pallas_rungs.figures.array_panel import array_panel
from pallas_rungs.figures.calls import Call, read_call
from pallas_rungs.figures.programs import Program, program_name
from pallas_rungs.figures.svg import Figure, hatched_swatch, swatch
from pallas_rungs.figures.theme import HIGHLIGHTS


def block_ownership(
    function: Callable[..., Any],
    *args: Any,
    alt: str,
    highlight: Sequence[Program | int] | None = None,
    names: Sequence[str] | None = None,
    index: int | None = None,
    scalars: Sequence[Any] = (),
    steps: bool = False,
) -> Figure:
    """Draw each operand of a `pallas_call` with its blocks, labelled by the programs that get them.

    Labels name the programs; ``*`` stands for every id of an axis. Coloured blocks belong to the
    highlighted programs, the same colour in every operand. Hatching is the part of a block that
    lies past the array's edge. The numbers along the edges are the first elements of the blocks.

    Args:
        function: calls `pallas_call`; it is traced on `args`, not run.
        args: arrays or `jax.ShapeDtypeStruct`.
        alt: what the figure shows, for readers who cannot see it.
        highlight: up to six program ids; a telling few if None. A grid of one axis takes ints.
        names: names of inputs and outputs; the kernel's argument names if None.
        index: which `pallas_call`, from 0, if there are several.
        scalars: values of prefetched scalars, if index maps read them.
        steps: also write at which steps of the loop nest each block is visited.

    Raises:
        ValueError: as `read_call`; or if a highlighted program is not in the grid.
    """
    call = read_call(function, *args, index=index, names=names, scalars=scalars)
    chosen = choose(call, highlight)
    panels = tuple(array_panel(call, operand, chosen, steps=steps) for operand in call.operands)
    key = tuple(
        (swatch(i), f"program {program_name(p)}" if call.grid else "the one program")
        for i, p in enumerate(chosen, start=1)
    )
    if any(panel.hatched for panel in panels):
        key += ((hatched_swatch(), "past the edge of the array"),)
    return Figure(alt=alt, panels=tuple(panel.drawing for panel in panels), key=key)


def choose(call: Call, highlight: Sequence[Program | int] | None) -> tuple[Program, ...]:
    """The programs to colour: those asked for, or the first, its neighbours, and the last.

    Raises:
        ValueError: if there are more than six, or one is not in the grid.
    """
    if highlight is None:
        picked = [call.programs[0]]
        for axis in reversed(range(len(call.grid))):
            if call.grid[axis] > 1:
                picked.append(tuple(int(a == axis) for a in range(len(call.grid))))
        picked.append(call.programs[-1])
        return tuple(dict.fromkeys(picked))[:HIGHLIGHTS]
    asked = tuple((p,) if isinstance(p, int) else tuple(p) for p in highlight)
    if len(asked) > HIGHLIGHTS:
        raise ValueError(f"{len(asked)} programs to highlight; colours tell {HIGHLIGHTS} apart")
    for program in asked:
        if program not in call.programs:
            raise ValueError(f"program {program} is not in the grid {call.grid}")
    return asked
