"""The product with a GELU against NumPy in float64."""

from typing import Any

import jax
import numpy as np
from hypothesis import given

from pallas_rungs.kernels.matmul_gelu import matmul_gelu, matmul_gelu_reference
from unit.kernels.matrices import FEW, OF_BLOCKS_OF_K, assert_gelu_of_product, for_gelu


@FEW
@given(**OF_BLOCKS_OF_K)
def test_gelu_of_the_finished_sum(
    M: int, blocks: int, bk: int, N: int, bm: int, bn: int, dtype: Any, seed: int
) -> None:
    x, y = for_gelu(seed, M, blocks * bk, N, dtype)
    got = matmul_gelu(x, y, block=(bm, bk, bn), interpret=True)
    assert_gelu_of_product(got, matmul_gelu_reference(x, y), x, y)


def test_it_is_the_gelu_of_jax() -> None:
    z = np.linspace(-6, 6, 8 * 128, dtype=np.float32).reshape(8, 128)
    got = matmul_gelu(np.eye(8, dtype=np.float32), z, interpret=True)
    np.testing.assert_allclose(got, jax.nn.gelu(z), rtol=1e-6, atol=1e-6)


def test_far_from_zero_it_is_zero_or_the_identity() -> None:
    z = np.tile(np.array([-1e30, -1e3, -40.0, 0.0, 40.0, 1e3, 1e30, 7.0], np.float32), (8, 1))
    got = matmul_gelu(np.eye(8, dtype=np.float32), z, interpret=True)
    one_rounding_of_tanh = 2.0**-22
    np.testing.assert_allclose(got, np.maximum(z, 0), rtol=one_rounding_of_tanh, atol=0)
