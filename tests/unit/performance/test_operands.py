"""Integer operands of kernels, computed from what is given; no compiler is needed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.gather_blocks import gather_blocks
from pallas_rungs.kernels.grouped_matmul import grouped_matmul, plan_visits
from pallas_rungs.performance.operands import (
    KernelOperands,
    hlo_type,
    known_operands,
    words_of,
)

ROWS = jax.ShapeDtypeStruct((24, 256), jnp.bfloat16)


def operands(function: Any, *args: Any) -> tuple[KernelOperands, ...]:
    return known_operands(jax.make_jaxpr(function)(*args), jax.tree.leaves(args))


def test_a_table_that_is_given_is_known() -> None:
    (found,) = operands(gather_blocks, np.array([2, 0, 1], np.int32), ROWS)
    assert found == KernelOperands("", ("s32[3]", "bf16[24,256]"), {0: (2, 0, 1)})


def test_a_table_that_is_computed_from_what_is_given_is_known() -> None:
    sizes = jnp.array([100, 40], jnp.int32)
    x = jax.ShapeDtypeStruct((140, 128), jnp.bfloat16)
    w = jax.ShapeDtypeStruct((2, 128, 256), jnp.bfloat16)
    (found,) = operands(grouped_matmul, x, w, sizes)
    tile, group, edges = plan_visits(sizes, 140, 128)
    assert found.values == {
        index: tuple(np.asarray(table).tolist()) for index, table in enumerate((tile, group, edges))
    }


def test_a_table_that_is_not_given_is_not_known() -> None:
    (found,) = operands(gather_blocks, jax.ShapeDtypeStruct((3,), jnp.int32), ROWS)
    assert found.values == {}


@pytest.mark.parametrize("wrap", [jax.jit, jax.checkpoint, lambda function: function])
def test_calls_are_looked_into(wrap: Any) -> None:
    inner = wrap(lambda table, x: gather_blocks(table + 1, x))
    (found,) = operands(inner, np.array([1, 0, -1], np.int32), ROWS)
    assert found.values == {0: (2, 1, 0)}


def test_several_kernels_are_told_in_their_order() -> None:
    def twice(table: Any, x: Any) -> Any:
        return gather_blocks(table, gather_blocks(table[::-1], x))

    table = np.array([2, 0, 1], np.int32)
    assert [one.values for one in operands(twice, table, ROWS)] == [{0: (1, 0, 2)}, {0: (2, 0, 1)}]


def test_a_constant_of_the_program_is_known() -> None:
    (found,) = operands(lambda x: gather_blocks(np.array([0, 2, 1], np.int32), x), ROWS)
    assert found.values == {0: (0, 2, 1)}


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (jnp.int32, "s32[2,3]"),
        (jnp.uint8, "u8[2,3]"),
        (jnp.bool_, "pred[2,3]"),
        (jnp.float32, "f32[2,3]"),
        (jnp.bfloat16, "bf16[2,3]"),
        (jnp.float8_e4m3fn, "f8e4m3fn[2,3]"),
        (jnp.int4, "s4[2,3]"),
    ],
)
def test_types_are_written_as_hlo_writes_them(dtype: Any, text: str) -> None:
    assert hlo_type(jax.ShapeDtypeStruct((2, 3), dtype)) == text


def test_rows_of_a_table_lie_128_words_apart() -> None:
    words = words_of(np.array([[[1, 2, 3], [4, 5, -6]]], np.int32))
    assert words is not None
    assert len(words) == 256
    assert words[:4] == (1, 2, 3, 0)
    assert words[128:132] == (4, 5, -6, 0)


def test_four_rows_of_int8_share_a_word() -> None:
    rows = np.arange(10, dtype=np.int8).reshape(5, 2) - 4
    words = words_of(rows)
    assert words is not None
    assert len(words) == 256
    for (row, column), value in np.ndenumerate(rows):
        byte = words[row // 4 * 128 + column] >> 8 * (row % 4) & 0xFF
        assert (byte ^ 0x80) - 0x80 == value


def word(words: tuple[int, ...] | None, place: int, bits: int, part: int) -> int:
    """A part of a word, with its sign."""
    assert words is not None
    value = words[place] >> bits * part & (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


@pytest.mark.parametrize(("dtype", "bits"), [(np.int8, 8), (np.int16, 16)])
def test_a_narrow_vector_lies_in_rows_of_128_that_share_words(dtype: Any, bits: int) -> None:
    values = (np.arange(600) % 251 - 120).astype(dtype)
    words, packed = words_of(values), 32 // bits
    assert words is not None
    assert len(words) == -(-600 // (128 * packed)) * 128
    for place, value in enumerate(values):
        row, column = divmod(place, 128)
        assert word(words, row // packed * 128 + column, bits, row % packed) == value


@pytest.mark.parametrize(
    ("rows", "tile"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16), (17, 24)]
)
def test_each_of_several_tables_has_whole_tiles(rows: int, tile: int) -> None:
    tables = np.arange(2 * rows * 3, dtype=np.int32).reshape(2, rows, 3)
    words = words_of(tables)
    assert words is not None
    assert len(words) == 2 * tile * 128
    for (table, row, column), value in np.ndenumerate(tables):
        assert words[(table * tile + row) * 128 + column] == value


def test_tiles_of_a_wide_table_lie_side_by_side() -> None:
    table = np.arange(9 * 200, dtype=np.int32).reshape(9, 200)
    words = words_of(table)
    assert words is not None
    for (row, column), value in np.ndenumerate(table):
        tile = row // 8 * 2 + column // 128
        assert words[(tile * 8 + row % 8) * 128 + column % 128] == value


def takes(table: Any, x: Any) -> Any:
    """A kernel with a table of any type."""

    def body(_: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((8, 128), lambda i, _: (i, 0))
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[block], out_specs=block
    )
    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    return pl.pallas_call(body, grid_spec=grid_spec, out_shape=out)(table, x)


def test_truth_values_reach_a_kernel_as_words() -> None:
    assert words_of(np.array([True, False, True])) == (1, 0, 1)
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    (found,) = operands(takes, np.array([True, False, True]), x)
    assert found.types[0] == "s32[3]"
    assert found.values == {0: (1, 0, 1)}


def test_floats_and_the_highest_bit_lie_as_their_bits() -> None:
    assert words_of(np.array([1.0, -2.0], np.float32)) == (0x3F800000, -0x40000000)
    assert words_of(np.array([1 << 31, 5], np.uint32)) == (-(1 << 31), 5)
    assert word(words_of(np.array([1.0], jnp.bfloat16)), 0, 16, 0) == 0x3F80


@pytest.mark.parametrize("table", [np.zeros(4, jnp.int4), np.zeros((2, 2), np.complex64)])
def test_a_layout_that_was_not_looked_at_is_not_known(table: np.ndarray) -> None:
    assert words_of(table) is None


def test_a_table_of_unknown_layout_is_told() -> None:
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    (found,) = operands(takes, jnp.zeros(3, jnp.int4), x)
    assert (found.values, found.unread) == ({}, (0,))


def test_an_operand_too_large_for_smem_is_left_alone() -> None:
    (found,) = operands(takes, np.zeros(3, np.int32), np.zeros((8, 1 << 16), np.float32))
    assert sorted(found.values) == [0]
    assert found.unread == ()


def test_a_table_without_numbers_has_no_words() -> None:
    for shape in ((0,), (0, 4), (4, 0)):
        assert words_of(np.zeros(shape, np.int8)) == ()


def test_a_scalar_and_a_vector_are_as_they_are() -> None:
    assert words_of(np.array(7, np.int8)) == (7,)
    assert words_of(np.array([3, -1], np.int32)) == (3, -1)
