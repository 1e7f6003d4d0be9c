"""The checks of arguments: what passes comes back, what does not is named with its remedy."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.checks import (
    block_size,
    check_blocks_divide,
    check_matrix,
    check_whole_blocks,
)
from unit.kernels.matrices import GATE


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
    with pytest.raises(
        ValueError, match=r"copies whole blocks and 32 does not divide M = 40: pass 8"
    ):
        check_whole_blocks("bm", 32, "M", 40)
    with pytest.raises(ValueError, match=r"32 does not divide M = 48: pass 24, or pad that axis"):
        check_whole_blocks("bm", 32, "M", 48)
    with pytest.raises(ValueError, match=r"8 does not divide M = 12: pass 12, or pad that axis"):
        check_whole_blocks("bm", 8, "M", 12)
    check_whole_blocks("bm", 24, "M", 48)


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
