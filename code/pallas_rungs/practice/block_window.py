"""Exercise: say which elements of its array a block holds, as an index into the array."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

Dim = int | None | pl.Blocked | pl.Element | pl.Squeezed
"""What stands in a block shape: a size, ``None`` for an axis that is squeezed out, or its kind."""

IndexMap = Callable[..., tuple[Any, ...]]
Window = tuple[int | slice, ...]
HeldBy = Callable[[Sequence[Dim], IndexMap, Sequence[int], Sequence[int]], Window]

DRAWN: Final = 40
"""Random settings that `check` asks for."""

AXES: Final = 3


@dataclass(frozen=True)
class Setting:
    """A block spec, the array that it is for, and one program.

    Attributes:
        block_shape: as it is given to a `pl.BlockSpec`.
        index_map: takes the grid indices, Python numbers or traced ones.
        place: the program's grid indices.
        grid: how many programs there are along each axis.
        array_shape: of the array. The block begins inside it; only blocks of plain sizes hang over.
    """

    block_shape: tuple[Dim, ...]
    index_map: IndexMap
    place: tuple[int, ...]
    grid: tuple[int, ...]
    array_shape: tuple[int, ...]

    def __str__(self) -> str:
        returned = tuple(int(index) for index in self.index_map(*self.place))
        return (
            f"block {self.block_shape} of an array {self.array_shape}, where the map returns "
            f"{returned} for program {self.place}"
        )


def mapping_of(setting: Setting) -> Any:
    """Return the block mapping that jax makes of a setting, by tracing a call with it."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        del x_ref, o_ref

    def call(x: jax.Array) -> Any:
        return pl.pallas_call(
            kernel,
            grid=setting.grid,
            in_specs=[pl.BlockSpec(setting.block_shape, setting.index_map)],
            out_shape=jax.ShapeDtypeStruct((1,), jnp.float32),
        )(x)

    array = jax.ShapeDtypeStruct(setting.array_shape, jnp.float32)
    (traced,) = jax.make_jaxpr(call)(array).eqns
    return traced.params["grid_mapping"].block_mappings[0]


def held(setting: Setting) -> Window:
    """Return the window by jax's own words: where its block starts, and the shape of its ref."""
    mapping = mapping_of(setting)
    sizes = iter(mapping.transformed_block_aval.shape)
    window: list[int | slice] = []
    for dim, start, length in zip(
        mapping.block_shape,
        mapping.compute_start_indices_interpret(setting.place),
        setting.array_shape,
        strict=True,
    ):
        if isinstance(dim, pl.Squeezed):
            window.append(int(start))
        else:
            window.append(slice(int(start), min(int(start) + next(sizes), length)))
    return tuple(window)


def starter(
    block_shape: Sequence[Dim],
    index_map: IndexMap,
    place: Sequence[int],
    array_shape: Sequence[int],
) -> Window:
    """Where to begin: right for plain sizes that divide the array."""
    window: list[int | slice] = []
    for dim, index, _length in zip(block_shape, index_map(*place), array_shape, strict=True):
        size = dim if isinstance(dim, int) else 1
        window.append(slice(size * index, size * (index + 1)))
    return tuple(window)


def solution(
    block_shape: Sequence[Dim],
    index_map: IndexMap,
    place: Sequence[int],
    array_shape: Sequence[int],
) -> Window:
    """One decision for each axis, by its kind, and no further than the array reaches."""
    window: list[int | slice] = []
    for dim, index, length in zip(block_shape, index_map(*place), array_shape, strict=True):
        match dim:
            case None | pl.Squeezed():
                window.append(index)
            case pl.Element(size):
                window.append(slice(index, min(index + size, length)))
            case int(size) | pl.Blocked(size):
                window.append(slice(size * index, min(size * (index + 1), length)))
    return tuple(window)


def multiplied(
    block_shape: Sequence[Dim],
    index_map: IndexMap,
    place: Sequence[int],
    array_shape: Sequence[int],
) -> Window:
    """Wrong: multiplies what the map returns for an Element, too."""
    window: list[int | slice] = []
    for dim, index, length in zip(block_shape, index_map(*place), array_shape, strict=True):
        if dim is None or isinstance(dim, pl.Squeezed):
            window.append(index)
        else:
            size = dim if isinstance(dim, int) else dim.block_size
            window.append(slice(size * index, min(size * (index + 1), length)))
    return tuple(window)


def never_multiplied(
    block_shape: Sequence[Dim],
    index_map: IndexMap,
    place: Sequence[int],
    array_shape: Sequence[int],
) -> Window:
    """Wrong: takes the map's result for the start, whatever the kind."""
    window: list[int | slice] = []
    for dim, index, length in zip(block_shape, index_map(*place), array_shape, strict=True):
        if dim is None or isinstance(dim, pl.Squeezed):
            window.append(index)
        else:
            size = dim if isinstance(dim, int) else dim.block_size
            window.append(slice(index, min(index + size, length)))
    return tuple(window)


def over_the_edge(
    block_shape: Sequence[Dim],
    index_map: IndexMap,
    place: Sequence[int],
    array_shape: Sequence[int],
) -> Window:
    """Wrong: the last block reaches past the end of the array."""
    endless = (sum(array_shape) + 10**6,) * len(array_shape)
    return solution(block_shape, index_map, place, endless)


def moved_back(
    block_shape: Sequence[Dim],
    index_map: IndexMap,
    place: Sequence[int],
    array_shape: Sequence[int],
) -> Window:
    """Wrong: the last block is moved back until it fits, as a `dynamic_slice` would be."""
    window: list[int | slice] = []
    for part, length in zip(
        over_the_edge(block_shape, index_map, place, array_shape), array_shape, strict=True
    ):
        if isinstance(part, slice):
            size = part.stop - part.start
            start = max(0, min(part.start, length - size))
            part = slice(start, min(start + size, length))
        window.append(part)
    return tuple(window)


def squeezed_kept(
    block_shape: Sequence[Dim],
    index_map: IndexMap,
    place: Sequence[int],
    array_shape: Sequence[int],
) -> Window:
    """Wrong: a squeezed axis stays, one element long."""
    window = solution(block_shape, index_map, place, array_shape)
    return tuple(part if isinstance(part, slice) else slice(part, part + 1) for part in window)


WRONG: tuple[tuple[HeldBy, str], ...] = (
    (multiplied, "returns the start itself"),
    (never_multiplied, "index times block size"),
    (over_the_edge, "no element past the end"),
    (moved_back, "index times block size"),
    (squeezed_kept, "not an axis of the ref"),
)


def check(held_by: HeldBy) -> None:
    """Compare with what jax makes of the same specs, for four chosen settings and forty random.

    Args:
        held_by: takes a block shape, an index map, a program's grid indices and the array's shape;
            returns an index into the array: a number for an axis that the kernel's ref does not
            have, a slice from start to stop for each other one.

    Raises:
        AssertionError: an index differs or the function raised; holds the setting, both, and a
            hint.
    """
    for setting in (*_CHOSEN, *random_settings(seed=12, count=DRAWN)):
        want = held(setting)
        try:
            got = tuple(
                held_by(setting.block_shape, setting.index_map, setting.place, setting.array_shape)
            )
        except Exception as error:
            raise AssertionError(
                f"for {setting} your function raised {type(error).__name__}: {error}. Hint: each "
                "kind of block dimension needs a case"
            ) from error
        if got != want:
            raise AssertionError(
                f"for {setting} the block holds array[{_shown(want)}], not "
                f"array[{_shown(got)}].{_hint(setting, got, want)}"
            )


def random_settings(seed: int, count: int) -> list[Setting]:
    """Draw specs for arrays of one to three axes; the same for the same seed.

    A block has `pl.Element` dimensions or plain ones and no mixture, as a TPU's lowering wants it,
    and squeezed ones with either.
    """
    draw = random.Random(seed)
    return [_drawn(draw) for _ in range(count)]


def _drawn(draw: random.Random) -> Setting:
    grid = tuple(draw.randint(1, 4) for _ in range(draw.randint(1, 2)))
    elements = draw.random() < 0.4
    dims: list[Dim] = []
    lengths: list[int] = []
    walks: list[tuple[int, int, int, int]] = []
    squeezed: tuple[Dim, ...] = (None, pl.Squeezed())
    for _ in range(draw.randint(1, AXES)):
        length, size = draw.randint(3, 20), draw.randint(1, 6)
        plain: tuple[Dim, ...] = (size, pl.Blocked(size))
        if draw.random() < 0.25:
            dims.append(draw.choice(squeezed))
            choices = length
        elif elements:
            size = min(size, length)
            dims.append(pl.Element(size))
            choices = length - size + 1
        else:
            dims.append(draw.choice(plain))
            choices = pl.cdiv(length, size)
        lengths.append(length)
        walks.append((draw.randrange(len(grid)), draw.randint(0, 3), draw.randint(0, 9), choices))

    def index_map(*place: Any) -> tuple[Any, ...]:
        return tuple((step * place[axis] + first) % n for axis, step, first, n in walks)

    place = tuple(draw.randrange(n) for n in grid)
    return Setting(tuple(dims), index_map, place, grid, tuple(lengths))


_CHOSEN: Final = (
    Setting((8, 128), lambda i, j: (i, j), (2, 1), (4, 2), (32, 256)),
    Setting((4,), lambda i: (i,), (2,), (3,), (10,)),
    Setting((None, 4, 6), lambda b, i: (b, i, 0), (2, 1), (3, 2), (3, 8, 6)),
    Setting((pl.Element(4), pl.Element(6)), lambda i: (2 * i, 0), (2,), (3,), (8, 6)),
)


def _shown(window: Sequence[Any]) -> str:
    return ", ".join(
        f"{part.start}:{part.stop}" if isinstance(part, slice) else str(part) for part in window
    )


def _hint(setting: Setting, got: Sequence[Any], want: Window) -> str:
    if len(got) != len(want):
        return " Hint: one entry for each axis of the array"
    for dim, mine, right in zip(setting.block_shape, got, want, strict=True):
        if mine == right:
            continue
        if isinstance(right, int):
            return (
                " Hint: a squeezed dimension is not an axis of the ref; a number takes it out of "
                "the index, a slice does not"
            )
        if not isinstance(mine, slice):
            return " Hint: an axis that the ref has wants a slice"
        if mine.start == right.start:
            return " Hint: a block holds no element past the end of its array"
        if isinstance(dim, pl.Element):
            return " Hint: the map of an Element dimension returns the start itself"
        return " Hint: a block starts at index times block size, also the last one"
    return ""
