"""What the matrix products have in common: operands for their cases, and float64 references."""

from typing import Any

import jax
import numpy as np


def product_operands(
    rng: np.random.Generator,
    M: int,
    K: int,
    N: int,
    dtype: Any = np.float32,
    *,
    sums_of_size_one: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return two normally distributed matrices that can be multiplied.

    Args:
        rng: Where the numbers come from; x is drawn first.
        M: Rows of x.
        K: Columns of x and rows of y.
        N: Columns of y.
        dtype: Of both.
        sums_of_size_one: Divide y by sqrt(K), so that elements of the product have size 1 and
            not sqrt(K).

    Returns:
        x, (M, K), and y, (K, N).
    """
    x, y = rng.standard_normal((M, K)), rng.standard_normal((K, N))
    if sums_of_size_one:
        y /= np.sqrt(K)
    return x.astype(dtype), y.astype(dtype)


def product_reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def gelu_of_product_reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return gelu(x @ y) in float64, the GELU with tanh."""
    z = product_reference(x, y)
    return np.asarray(0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))))
