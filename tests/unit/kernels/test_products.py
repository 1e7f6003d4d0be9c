"""What holds for every matrix product: its reference, one rounding, and what it refuses."""

import math
from typing import Any

import numpy as np
import pytest

from pallas_rungs.kernels.grouped_matmul import grouped_matmul
from pallas_rungs.kernels.matmul import matmul, matmul_reference
from pallas_rungs.kernels.matmul_gelu import matmul_gelu, matmul_gelu_reference
from pallas_rungs.kernels.matmul_int8 import matmul_int8
from pallas_rungs.kernels.matmul_masked import matmul_masked, matmul_masked_reference
from pallas_rungs.kernels.matmul_rows_columns import (
    matmul_rows_columns,
    matmul_rows_columns_reference,
)
from pallas_rungs.kernels.matmul_scratch import matmul_scratch, matmul_scratch_reference
from pallas_rungs.kernels.matmul_serpentine import (
    matmul_serpentine,
    matmul_serpentine_gelu,
    matmul_serpentine_gelu_reference,
    matmul_serpentine_reference,
)
from pallas_rungs.kernels.products import product_operands
from unit.kernels.matrices import BFLOAT16, matrix

BY_ROWS_AND_COLUMNS = (matmul_rows_columns, matmul_serpentine, matmul_serpentine_gelu)
BY_BLOCKS_OF_K = (matmul, matmul_scratch, matmul_masked, matmul_gelu)

X, Y = np.ones((16, 256), np.float32), np.ones((256, 384), np.float32)
OTHER_OPERANDS = (
    (matmul_int8, (X, Y.astype(np.int8), Y[0])),
    (grouped_matmul, (X, np.stack([Y, Y]), np.array([6, 10], np.int32))),
)


@pytest.mark.parametrize(
    "reference",
    [
        matmul_reference,
        matmul_masked_reference,
        matmul_rows_columns_reference,
        matmul_scratch_reference,
        matmul_serpentine_reference,
    ],
)
def test_a_reference_sums_products(reference: Any) -> None:
    x, y = matrix(0, 4, 30, BFLOAT16), matrix(1, 30, 5, BFLOAT16)
    want = [
        [math.fsum(float(x[i, k]) * float(y[k, j]) for k in range(30)) for j in range(5)]
        for i in range(4)
    ]
    got = reference(x, y)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("reference", [matmul_gelu_reference, matmul_serpentine_gelu_reference])
def test_a_reference_with_a_gelu_is_the_formula(reference: Any) -> None:
    x, y = matrix(0, 4, 30, BFLOAT16), (matrix(1, 30, 5, np.float64) / 100).astype(BFLOAT16)
    got = reference(x, y)
    assert got.dtype == np.float64
    for i, j in np.ndindex(4, 5):
        z = math.fsum(float(x[i, k]) * float(y[k, j]) for k in range(30))
        inner = math.sqrt(2 / math.pi) * (z + 0.044715 * z * z * z)
        assert got[i, j] == pytest.approx(z / 2 * (1 + math.tanh(inner)), rel=1e-11, abs=1e-11)


def test_operands_of_cases_have_the_shapes_and_sizes_that_are_asked_for() -> None:
    x, y = product_operands(np.random.default_rng(0), 20, 900, 30, BFLOAT16)
    assert (x.shape, y.shape, x.dtype, y.dtype) == ((20, 900), (900, 30), BFLOAT16, BFLOAT16)
    long = product_operands(np.random.default_rng(0), 20, 900, 30)
    short = product_operands(np.random.default_rng(0), 20, 900, 30, sums_of_size_one=True)
    np.testing.assert_array_equal(short[0], long[0])
    assert np.std(long[0] @ long[1]) == pytest.approx(30, rel=0.1)
    assert np.std(short[0] @ short[1]) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (matmul_scratch, {"block": (8, 128, 128)}),
        (matmul_masked, {"block": (8, 128, 128)}),
        (matmul_gelu, {"block": (8, 128, 128)}),
        (matmul_serpentine, {}),
        (matmul_serpentine_gelu, {}),
    ],
)
def test_a_bfloat16_result_is_rounded_once(call: Any, options: Any) -> None:
    # 256 and 1023 times 2**-9: a sum kept in bfloat16 would never leave 256.
    K = 1024
    x, y = np.ones((8, K), BFLOAT16), np.full((K, 128), 2.0**-9, BFLOAT16)
    y[0] = 256
    want = np.asarray(256 + (K - 1) * 2.0**-9).astype(BFLOAT16)
    assert want != 256
    got = call(x, y, interpret=True, **options)
    np.testing.assert_array_equal(got, np.full((8, 128), want))


@pytest.mark.parametrize("call", BY_BLOCKS_OF_K + BY_ROWS_AND_COLUMNS)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, Y[:128], r"the shape of y is \(128, 384\).*needs the 256 columns of x"),
        (X.astype(np.int32), Y, "the dtype of x is int32.*float32 and bfloat16"),
        (X, Y.astype(np.float16), "the dtype of y is float16.*float32 and bfloat16"),
        (X, Y.astype(BFLOAT16), "the dtype of y is bfloat16, but it must be that of x"),
        (X[0], Y, r"the shape of x is \(256,\), but the kernel takes matrices"),
        (X, Y[:, 0], r"the shape of y is \(256,\), but the kernel takes matrices"),
        (X[:0], Y, "the shape of x.*a grid over nothing runs no program"),
        (X, Y[:, :0], "the shape of y.*a grid over nothing runs no program"),
    ],
)
def test_operands_that_do_not_fit(call: Any, x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(x, y, interpret=True)


@pytest.mark.parametrize(
    ("call", "operands"), [*((call, (X, Y)) for call in BY_BLOCKS_OF_K), *OTHER_OPERANDS]
)
@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128, 128), "bm is 4, but a block takes a multiple of 8"),
        ((8, 64, 128), "bk is 64, but a block takes a multiple of 128 of this axis or all 256"),
        ((8, 128, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 384"),
        ((8, 128), r"block is \(8, 128\), but the kernel takes \(bm, bk, bn\)"),
    ],
)
def test_blocks_that_no_chip_takes(call: Any, operands: Any, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(*operands, block=block, interpret=True)


@pytest.mark.parametrize("call", BY_ROWS_AND_COLUMNS)
@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((4, 128), "bm is 4, but a block takes a multiple of 8"),
        ((8, 64), "bn is 64, but a block takes a multiple of 128 of this axis or all 384"),
        ((8, 128, 128), r"block is \(8, 128, 128\), but the kernel takes \(bm, bn\)"),
    ],
)
def test_blocks_of_rows_and_columns_that_no_chip_takes(call: Any, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(X, Y, block=block, interpret=True)


@pytest.mark.parametrize("call", [matmul, matmul_scratch, matmul_gelu])
def test_a_partial_block_of_k_is_refused(call: Any) -> None:
    x, y = np.ones((8, 768), np.float32), np.ones((768, 128), np.float32)
    with pytest.raises(ValueError, match=r"bk is 512.*512 does not divide K = 768: pass 384, or"):
        call(x, y, interpret=True)
    got = call(x, y, block=(8, 384, 128), interpret=True)
    np.testing.assert_array_equal(got, 768.0)  # where GELU is the identity


@pytest.mark.parametrize(("call", "operands"), OTHER_OPERANDS)
def test_a_partial_block_of_k_is_refused_of_other_operands(call: Any, operands: Any) -> None:
    x, weights, *more = operands
    x, weights = np.tile(x, (1, 3))[:, :384], np.tile(weights, (3, 1))[..., :384, :]
    with pytest.raises(ValueError, match="256 does not divide K = 384"):
        call(x, weights, *more, block=(8, 256, 128), interpret=True)
