"""The checks of arguments: what passes comes back, what does not is named with its remedy."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.checks import (
    at_least_float32,
    block_size,
    check_alike,
    check_attention,
    check_blocks_divide,
    check_matrix,
    check_product,
    check_table,
    float_dtypes,
    product_blocks,
)
from unit.kernels.matrices import FLOAT32, GATE

BFLOAT16 = jnp.dtype(jnp.bfloat16)


@GATE
@given(size=st.integers(1, 600), axis=st.integers(1, 600), multiple=st.sampled_from([1, 8, 128]))
def test_block_size_is_what_a_chip_takes_or_an_error(size: int, axis: int, multiple: int) -> None:
    legal = size >= axis or size % multiple == 0
    if legal:
        assert block_size("bm", size, axis, multiple) == min(size, axis)
    else:
        with pytest.raises(ValueError, match=f"bm is {size}, but a block takes a multiple"):
            block_size("bm", size, axis, multiple)


@GATE
@given(size=st.integers(1, 600), axis=st.integers(1, 600))
def test_the_remedy_of_block_size_is_legal(size: int, axis: int) -> None:
    try:
        block_size("bn", size, axis, 128)
    except ValueError as error:
        advice = re.search(r"pass (\d+)\.$", str(error))
        assert advice is not None
        block_size("bn", int(advice[1]), axis, 128)


@pytest.mark.parametrize("size", [8.0, "8", None, True, np.float32(8)])
def test_a_block_size_is_an_integer(size: object) -> None:
    with pytest.raises(ValueError, match=r"bm is a \w+, but a block size is fixed before"):
        block_size("bm", size, 64, 8)


@pytest.mark.parametrize("size", [0, -8])
def test_a_block_size_is_positive(size: int) -> None:
    with pytest.raises(ValueError, match=f"bm is {size}, but a block has at least one element"):
        block_size("bm", size, 64, 8)


def test_a_numpy_integer_becomes_a_python_one() -> None:
    assert type(block_size("bm", np.int64(8), 64, 8)) is int


def test_a_traced_block_size_is_told_to_be_static() -> None:
    with pytest.raises(ValueError, match=r"bm is a \w*Tracer.*static_argnames"):
        jax.jit(lambda size: jnp.zeros(block_size("bm", size, 64, 8)))(8)


def test_a_block_that_does_not_divide_gets_one_that_does() -> None:
    with pytest.raises(ValueError, match=r"512 does not divide K = 768: pass 384, or pad"):
        check_blocks_divide("bk", 512, "K", 768)
    with pytest.raises(ValueError, match=r"128 does not divide K = 300: pass 300, or pad"):
        check_blocks_divide("bk", 128, "K", 300)
    check_blocks_divide("bk", 384, "K", 768)


def test_a_block_that_leaves_a_rest_gets_one_that_fills() -> None:
    def check(size: int, axis: int) -> None:
        check_blocks_divide("bm", size, "M", axis, multiple=8, because="the kernel copies blocks")

    with pytest.raises(ValueError, match=r"copies blocks and 32 does not divide M = 40: pass 8"):
        check(32, 40)
    with pytest.raises(ValueError, match=r"32 does not divide M = 48: pass 24, or pad that axis"):
        check(32, 48)
    with pytest.raises(ValueError, match=r"8 does not divide M = 12: pass 12, or pad that axis"):
        check(8, 12)
    check(24, 48)


def test_a_matrix_gives_its_shape() -> None:
    assert check_matrix("x", jnp.zeros((3, 5)), ("float32",)) == (3, 5)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(4, np.float32), r"the shape of x is \(4,\), but the kernel takes matrices"),
        (np.zeros((2, 3, 4), np.float32), r"\(2, 3, 4\), but the kernel takes matrices: reshape"),
        (np.zeros((0, 4), np.float32), r"\(0, 4\), but a grid over nothing runs no program"),
        (np.zeros((4, 4)), r"the dtype of x is float64.*float32 and bfloat16.*astype\(jnp\.float"),
    ],
    ids=["vector", "rank 3", "empty", "float64"],
)
def test_what_is_no_matrix_is_named(array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_matrix("x", array, ("float32", "bfloat16"))


def test_float64_is_for_interpreters() -> None:
    assert "float64" not in float_dtypes(False)
    assert set(float_dtypes(True)) == {*float_dtypes(False), "float64"}
    assert float_dtypes(pltpu.InterpretParams()) == float_dtypes(True)


def test_a_block_is_widened_to_float32_and_never_narrowed() -> None:
    assert at_least_float32(jnp.ones((2,), jnp.bfloat16)).dtype == FLOAT32
    assert at_least_float32(jnp.ones((2,), jnp.float32)).dtype == FLOAT32
    with jax.enable_x64(True):
        assert at_least_float32(jnp.ones((2,), jnp.float64)).dtype == np.float64


def test_attention_gives_its_sizes_with_one_head_for_matrices() -> None:
    q, k = np.zeros((2, 3, 8), np.float32), np.zeros((2, 5, 8), np.float32)
    assert check_attention(q, k, k, causal=False) == (2, 3, 5, 8)
    assert check_attention(q[0], k[0], k[0], causal=False) == (1, 3, 5, 8)
    assert check_attention(q, q, q, causal=True) == (2, 3, 3, 8)
    with pytest.raises(ValueError, match="and q has 3: pass as many keys as queries"):
        check_attention(q, k, k, causal=True)


def test_a_table_gives_its_length() -> None:
    assert check_table("table", jnp.zeros(7, jnp.int32)) == 7


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2), np.int32), r"the shape of table is \(2, 2\), but the kernel takes a vec"),
        (np.zeros((), np.int32), r"the shape of table is \(\), but the kernel takes a vector"),
        (np.zeros(0, np.int32), r"the shape of table is \(0,\).*at least one entry"),
        (np.zeros(4, np.int8), r"the dtype of table is int8, but the kernel is written for int32"),
    ],
    ids=["matrix", "scalar", "empty", "int8"],
)
def test_what_is_no_table_is_named(array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_table("table", array)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((2, 4), np.float32), r"the shape of y is \(2, 4\), but it must be that of x, "),
        (np.zeros((2, 3), np.int32), r"the dtype of y is int32, but it must be that of x, float"),
    ],
    ids=["shape", "dtype"],
)
def test_arrays_that_are_not_alike_are_named(y: np.ndarray, message: str) -> None:
    x = np.zeros((2, 3), np.float32)
    check_alike("x", x, "y", x.copy())
    with pytest.raises(ValueError, match=message):
        check_alike("x", x, "y", y)


def test_a_product_gives_its_sizes() -> None:
    x, y = np.zeros((2, 3), np.float32), np.zeros((3, 5), np.float32)
    assert check_product(x, y) == (2, 3, 5)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((5, 3), np.float32), r"the shape of y is \(5, 3\).* needs the 3 columns of x, "),
        (np.zeros((3, 5), BFLOAT16), r"the dtype of y is bfloat16, but it must be that of x, fl"),
        (np.zeros((3, 5), np.int8), r"the dtype of y is int8, but the kernel is written for"),
    ],
    ids=["inner axes", "dtypes", "another dtype"],
)
def test_what_has_no_product_is_named(y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_product(np.zeros((2, 3), np.float32), y)


def test_each_block_of_a_product_is_held_against_its_own_axis() -> None:
    assert product_blocks((8, 256, 384), 16, 512, 768) == (8, 256, 384)
    assert product_blocks([64, 640, 1024], 16, 512, 768) == (16, 512, 768)
    for block, said in (
        ((4, 128, 128), "bm is 4"),
        ((8, 64, 128), "bk is 64"),
        ((8, 128, 96), "bn"),
    ):
        with pytest.raises(ValueError, match=f"{said}.* but a block takes a multiple of"):
            product_blocks(block, 16, 512, 768)


@pytest.mark.parametrize("block", [(8, 128), (8, 128, 128, 128), 128, None, {8: 0, 128: 1, 9: 2}])
def test_a_block_has_a_size_for_each_axis(block: object) -> None:
    with pytest.raises(ValueError, match=r"block is .*, but the kernel takes \(bm, bk, bn\): pass"):
        product_blocks(block, 16, 512, 768)


def _heads(*shape: int, dtype: object = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("q", "k", "v", "message"),
    [
        (_heads(2, 3, 8, dtype=np.int8), *[_heads(2, 5, 8)] * 2, "the dtype of q is int8"),
        (_heads(8), *[_heads(8)] * 2, r"the shape of q is \(8,\), but it must be \(heads, Tq, d\)"),
        (_heads(2, 3, 8), *[_heads(5, 8)] * 2, r"the shape of k is \(5, 8\), but it must be that"),
        (_heads(2, 3, 8), *[_heads(2, 5, 4)] * 2, r"the shape of k is \(2, 5, 4\), but it must"),
        (_heads(2, 3, 8), *[_heads(1, 5, 8)] * 2, r"the shape of k is \(1, 5, 8\), but it must"),
        (_heads(2, 3, 8), _heads(2, 5, 8), _heads(2, 4, 8), "the shape of v is .* that of k"),
        (_heads(2, 3, 8), *[_heads(2, 5, 8, dtype=BFLOAT16)] * 2, "the dtype of k is bfloat16"),
        (_heads(2, 0, 8), *[_heads(2, 5, 8)] * 2, r"the shape of q is \(2, 0, 8\).*over nothing"),
        (_heads(2, 3, 8), *[_heads(2, 0, 8)] * 2, r"the shape of k is \(2, 0, 8\).*over nothing"),
    ],
    ids=["dtype", "rank", "ranks", "d", "heads", "v", "dtypes", "no query", "no key"],
)
def test_what_does_not_attend_is_named(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_attention(q, k, v, causal=False)


def test_one_query_and_one_key_attend() -> None:
    assert check_attention(*[_heads(1, 1)] * 3, causal=True) == (1, 1, 1, 1)
