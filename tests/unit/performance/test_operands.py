"""Integer operands of kernels, computed from what is given; no compiler is needed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_rungs.kernels.gather_blocks import gather_blocks
from pallas_rungs.kernels.grouped_matmul import grouped_matmul, plan_visits
from pallas_rungs.performance.operands import (
    KernelOperands,
    hlo_type,
    integer_operands,
    words_of,
)

ROWS = jax.ShapeDtypeStruct((24, 256), jnp.bfloat16)


def operands(function: Any, *args: Any) -> tuple[KernelOperands, ...]:
    return integer_operands(jax.make_jaxpr(function)(*args), jax.tree.leaves(args))


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


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((2, 129), np.int32),
        np.zeros((2, 2, 2), np.int32),
        np.zeros((2, 2), np.int16),
        np.zeros(4, np.int8),
    ],
)
def test_a_layout_that_was_not_looked_at_is_not_known(table: np.ndarray) -> None:
    assert words_of(table) is None


def test_a_scalar_and_a_vector_are_as_they_are() -> None:
    assert words_of(np.array(7, np.int8)) == (7,)
    assert words_of(np.array([3, -1], np.int32)) == (3, -1)
