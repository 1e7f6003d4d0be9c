"""The products that turn round, against NumPy in float64; their order; their refusals."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.matmul_gelu import matmul_gelu_reference
from pallas_rungs.kernels.matmul_serpentine import (
    matmul_serpentine,
    matmul_serpentine_gelu,
    matmul_serpentine_gelu_reference,
    matmul_serpentine_reference,
)
from unit.kernels.matrices import (
    BFLOAT16,
    FEW,
    FLOAT32,
    RTOL,
    float64,
    lengths,
    matrix,
    seeds,
    sizes,
)

CALLS = (matmul_serpentine, matmul_serpentine_gelu)


@FEW
@given(
    M=lengths,
    K=lengths,
    N=lengths,
    bm=sizes(8, 320),
    bn=sizes(128, 384),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_the_product_of_any_shape(
    M: int, K: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x = matrix(seed, M, K, dtype)
    y = (matrix(seed + 1, K, N, np.float64) / (100 * math.sqrt(K))).astype(dtype)
    terms = np.abs(float64(x)) @ np.abs(float64(y))
    for call, reference in (
        (matmul_serpentine, matmul_serpentine_reference),
        (matmul_serpentine_gelu, matmul_serpentine_gelu_reference),
    ):
        got, want = call(x, y, block=(bm, bn), interpret=True), reference(x, y)
        assert (got.shape, got.dtype) == ((M, N), dtype)
        # The slope of GELU is below 1.13; tanh and its argument add a few roundings of |z|.
        atol = 1.13 * K * 2.0**-24 * terms + 1e-6 * np.abs(float64(x) @ float64(y)) + 1e-6
        error = np.abs(float64(got) - want)
        np.testing.assert_array_less(error, atol + (RTOL[dtype] + 1e-6) * np.abs(want))


def test_the_references_are_the_formulas() -> None:
    x, y = matrix(0, 4, 30, BFLOAT16), (matrix(1, 30, 5, np.float64) / 100).astype(BFLOAT16)
    np.testing.assert_array_equal(
        matmul_serpentine_gelu_reference(x, y), matmul_gelu_reference(x, y)
    )
    product = matmul_serpentine_reference(x, y)
    assert product.dtype == np.float64
    for i, j in np.ndindex(4, 5):
        want = math.fsum(float(x[i, k]) * float(y[k, j]) for k in range(30))
        assert product[i, j] == pytest.approx(want, rel=1e-12)


def blocks_in_order(call: Any, M: int, K: int, N: int) -> list[list[tuple[int, ...]]]:
    """The block of x, of y and of the result for each program, in order: from the traced call."""
    x, y = jax.ShapeDtypeStruct((M, K), jnp.float32), jax.ShapeDtypeStruct((K, N), jnp.float32)
    (equation,) = [
        it for it in jax.make_jaxpr(call)(x, y).eqns if it.primitive.name == "pallas_call"
    ]
    mapping = equation.params["grid_mapping"]
    maps = [it.index_map_jaxpr for it in mapping.block_mappings]
    return [
        [
            tuple(map(int, jax.core.eval_jaxpr(one.jaxpr, one.consts, *map(jnp.int32, place))))
            for one in maps
        ]
        for place in np.ndindex(*mapping.grid)
    ]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (3, 1), (3, 4), (4, 3)])
def test_each_block_is_made_once_and_one_operand_changes_at_a_time(
    call: Any, rows: int, columns: int
) -> None:
    order = blocks_in_order(call, 256 * rows, 128, 256 * columns)
    made = [out for _, _, out in order]
    assert made[0] == (0, 0)
    assert sorted(made) == list(np.ndindex(rows, columns))
    assert all(x == (out[0], 0) and y == (0, out[1]) for x, y, out in order)
    for before, after in itertools.pairwise(order):
        assert sum(one != other for one, other in zip(before[:2], after[:2], strict=True)) == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_bfloat16_result_is_rounded_once(call: Any) -> None:
    # 256 and 256 times 2**-9: a sum kept in bfloat16 would never leave 256.
    K = 1024
    x, y = np.ones((8, K), BFLOAT16), np.full((K, 128), 2.0**-9, BFLOAT16)
    y[0] = 256
    want = np.asarray(256 + (K - 1) * 2.0**-9).astype(BFLOAT16)
    assert want != 256
    np.testing.assert_array_equal(call(x, y, interpret=True), np.full((8, 128), want))


@pytest.mark.parametrize("call", CALLS)
def test_the_limit_is_the_compilers_unless_asked_for(call: Any) -> None:
    x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    for given_, said in (({}, None), ({"vmem_limit_bytes": 2**20}, 2**20)):
        (equation,) = [
            it
            for it in jax.make_jaxpr(lambda x, y: call(x, y, **given_))(x, x).eqns  # noqa: B023
            if it.primitive.name == "pallas_call"
        ]
        assert equation.params["compiler_params"].vmem_limit_bytes == said


x16, y16 = np.ones((16, 256), np.float32), np.ones((256, 384), np.float32)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (x16, y16[:128], r"the shape of y is \(128, 384\).*needs the 256 columns of x"),
        (x16, y16.astype(BFLOAT16), "the dtype of y is bfloat16, but it must be that of x"),
        (x16.astype(np.int32), y16, "the dtype of x is int32.*float32 and bfloat16"),
        (x16[0], y16, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (x16[:0], y16, "a grid over nothing runs no program"),
    ],
)
def test_operands_that_do_not_fit(call: Any, x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(x, y, interpret=True)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128), "bm is 4, but a block takes a multiple of 8"),
        ((8, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 384"),
        ((8, 128, 128), r"block is \(8, 128, 128\), but the kernel takes \(bm, bn\)"),
    ],
)
def test_blocks_that_no_chip_takes(block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matmul_serpentine(x16, y16, block=block, interpret=True)
