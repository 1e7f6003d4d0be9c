"""The products that turn round, against NumPy in float64, and their order."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

from pallas_rungs.kernels.matmul_serpentine import (
    matmul_serpentine,
    matmul_serpentine_gelu,
    matmul_serpentine_gelu_reference,
)
from unit.kernels.launches import blocks_in_order, launches
from unit.kernels.matrices import (
    FEW,
    OF_ANY_SHAPE,
    assert_gelu_of_product,
    assert_product,
    for_gelu,
)

CALLS = (matmul_serpentine, matmul_serpentine_gelu)


@FEW
@given(**OF_ANY_SHAPE)
def test_the_product_of_any_shape(
    M: int, K: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = for_gelu(seed, M, K, N, dtype)
    assert_product(matmul_serpentine(x, y, block=(bm, bn), interpret=True), x, y, dtype)
    got = matmul_serpentine_gelu(x, y, block=(bm, bn), interpret=True)
    assert_gelu_of_product(got, matmul_serpentine_gelu_reference(x, y), x, y)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (3, 1), (3, 4), (4, 3)])
def test_each_block_is_made_once_and_one_operand_changes_at_a_time(
    call: Any, rows: int, columns: int
) -> None:
    M, N = 256 * rows, 256 * columns
    x, y = jax.ShapeDtypeStruct((M, 128), jnp.float32), jax.ShapeDtypeStruct((128, N), jnp.float32)
    (launch,) = launches(call, x, y)
    order = list(zip(*(blocks_in_order(launch, operand) for operand in range(3)), strict=True))
    made = [out for _, _, out in order]
    assert made[0] == (0, 0)
    assert sorted(made) == list(np.ndindex(rows, columns))
    assert all(x == (out[0], 0) and y == (0, out[1]) for x, y, out in order)
    for before, after in itertools.pairwise(order):
        assert sum(one != other for one, other in zip(before[:2], after[:2], strict=True)) == 1


@pytest.mark.parametrize("call", CALLS)
def test_the_limit_is_the_compilers_unless_asked_for(call: Any) -> None:
    x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    for options, said in (({}, None), ({"vmem_limit_bytes": 2**20}, 2**20)):
        (launch,) = launches(call, x, x, **options)
        assert launch["compiler_params"].vmem_limit_bytes == said
