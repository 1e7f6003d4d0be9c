"""The matrix products in float32 against NumPy in float64."""

from typing import Any

from hypothesis import given

from pallas_rungs.kernels.matmul import matmul
from pallas_rungs.kernels.matmul_rows_columns import matmul_rows_columns
from unit.kernels.matrices import FEW, OF_ANY_SHAPE, OF_BLOCKS_OF_K, assert_product, matrix


@FEW
@given(**OF_BLOCKS_OF_K)
def test_blocks_of_k_add_up(
    M: int, blocks: int, bk: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = matrix(seed, M, blocks * bk, dtype), matrix(seed + 1, blocks * bk, N, dtype)
    assert_product(matmul(x, y, block=(bm, bk, bn), interpret=True), x, y)


@FEW
@given(**OF_ANY_SHAPE)
def test_rows_meet_columns(M: int, K: int, N: int, bm: int, bn: int, dtype: Any, seed: int) -> None:
    x, y = matrix(seed, M, K, dtype), matrix(seed + 1, K, N, dtype)
    assert_product(matmul_rows_columns(x, y, block=(bm, bn), interpret=True), x, y)
    assert_product(matmul(x, y, block=(bm, K, bn), interpret=True), x, y)
