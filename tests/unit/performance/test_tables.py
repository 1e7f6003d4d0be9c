"""Tables in SMEM decide where kernels go: each is followed as the kernel reads it, or it is named.

A program holds one kernel for each type and shape of a table. Blocks of the input are so large
that the bytes of the table do not fill one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.compilers import libtpu
from pallas_rungs.performance import EstimateError, estimate

pytestmark = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
STEPS, BLOCKS = 12, 16
BLOCK = (64, 128)
BLOCK_BYTES = 64 * 128 * 4
X = jax.ShapeDtypeStruct((1 << 19, 128), jnp.float32)  # too large to be kept in VMEM
SHAPES = ((12,), (300,), (12, 3), (3, 12), (9, 140), (2, 5, 12), (12, 2, 3), (2, 2, 9, 5), ())
INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32")
FLOATS = ("float32", "bfloat16")

Place = Callable[[jax.Array, Any], Any]


def gather(place: Place, table: Any, x: jax.Array, name: str = "gather") -> Any:
    """Read the blocks that a table tells; `place` reads one of its numbers for each step."""

    def body(_: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[0:8] + 1.0

    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(STEPS,),
            in_specs=[pl.BlockSpec(BLOCK, lambda i, ref: (place(i, ref), 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, _: (i, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((8 * STEPS, 128), jnp.float32),
        name=name,
    )(table, x)


def walk(step: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Indices of the number that a step reads: five further on each time."""
    place = 5 * step % int(np.prod(shape))
    found = []
    for size in reversed(shape):
        found.append(place % size)
        place = place // size
    return tuple(reversed(found))


def walked(step: jax.Array, ref: Any) -> Any:
    """The block of a step; of a scalar its multiples."""
    number = ref[walk(step, ref.shape)].astype(jnp.int32)
    return number if ref.shape else step * number


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Blocks to go to; 0 and 1 of booleans."""
    high = 2 if dtype == "bool" else 7 if dtype == "int4" else BLOCKS
    drawn = np.random.default_rng(len(shape)).integers(0, high, shape)
    return np.asarray((drawn if shape else np.array(1)).astype(jnp.dtype(dtype)))


def changes(blocks: list[int]) -> int:
    """How many blocks are read: one that stays is not read again."""
    return 1 + sum(one != other for one, other in pairwise(blocks))


def wanted(table: np.ndarray) -> int:
    steps = range(STEPS)
    read = [int(table[walk(step, table.shape)]) for step in steps]
    return changes(read if table.shape else [step * read[0] for step in steps])


def followed(dtypes: tuple[str, ...], shapes: Any, chip: str) -> None:
    """Hold a program of one kernel for each table against the blocks that they tell."""
    tables = {
        f"of_{dtype}_{'x'.join(map(str, shape))}": numbers(dtype, shape)
        for dtype in dtypes
        for shape in shapes
    }

    def program(tables: dict[str, Any], x: jax.Array) -> Any:
        return [gather(walked, table, x, name) for name, table in tables.items()]

    found = estimate(program, tables, X, chip=chip)
    read = {
        kernel.name.rpartition(".")[0]: kernel.hbm_read_bytes // BLOCK_BYTES
        for kernel in found.kernels
        if kernel.pallas
    }
    assert read == {name: wanted(table) for name, table in tables.items()}
    assert found.unresolved == ()
    assert max(read.values()) > 3


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32"])
def test_a_table_of_integers_or_truth_values_is_followed_in_every_shape(dtype: str) -> None:
    followed((dtype,), SHAPES, "v5e")


def test_a_table_of_unsigned_numbers_is_followed() -> None:
    followed(("uint8", "uint16", "uint32"), ((12,), (2, 5, 12)), "v5e")


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_table_of_floats_is_followed_in_every_shape(dtype: str) -> None:
    followed((dtype,), SHAPES, "v6e")


@pytest.mark.parametrize("chip", ["v5p", "v6e", "v4", "tpu7x"])
def test_the_other_chips_follow_tables_as_well(chip: str) -> None:
    floats = FLOATS if chip != "v4" else ()
    followed(("bool", "int8", "int32", *floats), ((12,), (3, 12), (2, 5, 12), ()), chip)


@pytest.mark.parametrize(
    ("dtype", "chip", "said"),
    [
        ("int4", "v5e", "they are given, but how s4[12] lies in SMEM is not known here"),
        ("float32", "v4", "an instruction that nothing here knows"),
    ],
)
def test_a_table_that_is_not_followed_is_named(dtype: str, chip: str, said: str) -> None:
    found = estimate(partial(gather, walked), numbers(dtype, (12,)), X, chip=chip)
    assert found.unresolved
    assert all(said in what for what in found.unresolved)


def test_a_table_that_is_not_given_is_asked_for() -> None:
    types = [*INTEGERS, *FLOATS]

    def program(tables: list[Any], x: jax.Array) -> Any:
        return [gather(walked, it, x, f"of_{name}") for name, it in zip(types, tables, strict=True)]

    tables = [jax.ShapeDtypeStruct((12,), jnp.dtype(dtype)) for dtype in types]
    found = estimate(program, tables, X, chip="v6e")
    for dtype in INTEGERS:
        asked = f"values of operand 0, in of_{dtype}."
        assert any(what.startswith(asked) and "concrete" in what for what in found.unresolved)
    for dtype in FLOATS:
        assert any(f", in of_{dtype}." in what for what in found.unresolved)


def test_a_table_without_numbers_is_the_compilers_to_refuse() -> None:
    with pytest.raises(EstimateError, match="did not compile") as refused:
        estimate(partial(gather, lambda step, _: step), np.zeros(0, np.int32), X)
    assert refused.value.kind == "refused"


@pytest.mark.parametrize(
    ("number", "shift"),
    [
        (np.int8(-3), 4),
        (np.uint8(200), -199),
        (np.int16(-300), 301),
        (np.int32(-5), 6),
        (np.float32(2.5), -1),
        (np.bool_(False), 1),
    ],
)
def test_a_scalar_is_followed_with_its_sign(number: Any, shift: int) -> None:
    def place(step: jax.Array, ref: Any) -> Any:
        return step * (ref[()].astype(jnp.int32) + shift)

    found = estimate(partial(gather, place), np.asarray(number), X)
    assert found.unresolved == ()
    assert found.main.hbm_read_bytes // BLOCK_BYTES == STEPS


def test_a_word_with_the_highest_bit_is_followed() -> None:
    table = np.array([1 << 31, 1, (1 << 31) + 2, 3] * 3, np.uint32)

    def place(step: jax.Array, ref: Any) -> Any:
        return (ref[step] >> jnp.uint32(31)).astype(jnp.int32)

    found = estimate(partial(gather, place), table, X)
    assert found.unresolved == ()
    assert found.main.hbm_read_bytes // BLOCK_BYTES == STEPS


def flagged(spec: pl.BlockSpec, at: Callable[[], Any], table: Any, x: jax.Array) -> Any:
    """A body copies a block where its table in SMEM holds a one."""

    def body(t_ref: Any, x_ref: Any, o_ref: Any, held: Any, done: Any) -> None:
        @pl.when(t_ref[at()] == 1)
        def _() -> None:
            copy = pltpu.make_async_copy(x_ref.at[pl.ds(0, BLOCK[0])], held, done)
            copy.start()
            copy.wait()

        o_ref[...] = jnp.ones_like(o_ref)

    return pl.pallas_call(
        body,
        grid=(8,),
        in_specs=[spec, pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM(BLOCK, jnp.float32), pltpu.SemaphoreType.DMA],
        name="flagged",
    )(table, x)


@pytest.mark.parametrize("chip", ["v5e", "v5p"])
def test_a_table_that_comes_to_smem_block_by_block_is_named(chip: str) -> None:
    flags = np.zeros((64, 128), np.int32)
    flags[[0, 16, 24, 48, 56], 0] = 1
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pltpu.SMEM)
    found = estimate(partial(flagged, rows, lambda: (0, 0)), flags, X, chip=chip)
    assert found.unresolved == ("values that a DMA brought to SMEM, in flagged.1",)
    whole = pl.BlockSpec(memory_space=pltpu.SMEM)
    by_step = partial(flagged, whole, lambda: (pl.program_id(0), 0))
    followed = estimate(by_step, flags[::8], X, chip=chip)
    assert followed.unresolved == ()
    assert followed.hbm_read_bytes // BLOCK_BYTES == 5
