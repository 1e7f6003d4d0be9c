"""Matrices and block sizes for hypothesis to draw, and the settings that keep the gate stable."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from pallas_rungs.kernels.case import BFLOAT16_RTOL

# The same examples in every run; no time limit on one, since the first one traces.
GATE = settings(max_examples=12, deadline=None, derandomize=True, database=None)
FEW = settings(GATE, max_examples=8)  # where an example takes long

FLOAT32, BFLOAT16, INT32 = np.dtype(np.float32), jnp.dtype(jnp.bfloat16), np.dtype(np.int32)

# Relative error of one operation whose result is stored in the dtype.
RTOL = {FLOAT32: 1e-6, BFLOAT16: BFLOAT16_RTOL, INT32: 0.0}

lengths = st.one_of(st.sampled_from([1, 7, 8, 127, 128, 129, 256]), st.integers(1, 300))
seeds = st.integers(0, 2**32 - 1)


def sizes(multiple: int, most: int) -> st.SearchStrategy[int]:
    """Block sizes that a chip takes: multiples, some of them longer than the axis."""
    return st.integers(1, most // multiple).map(lambda n: n * multiple)


OF_ANY_SHAPE = {
    "M": lengths,
    "K": lengths,
    "N": lengths,
    "bm": sizes(8, 320),
    "bn": sizes(128, 384),
    "dtype": st.sampled_from([FLOAT32, BFLOAT16]),
    "seed": seeds,
}
"""What to draw for a product that holds all of K."""

OF_BLOCKS_OF_K = {
    **{name: drawn for name, drawn in OF_ANY_SHAPE.items() if name != "K"},
    "blocks": st.integers(1, 3),
    "bk": st.sampled_from([128, 256]),
}
"""What to draw for a product whose blocks of K are summed, `blocks` of `bk`."""


def matrix(seed: int, M: int, N: int, dtype: Any) -> np.ndarray:
    """A matrix of normal numbers times 10, reproducible from the seed."""
    return (10 * np.random.default_rng(seed).standard_normal((M, N))).astype(dtype)


def float64(x: Any) -> np.ndarray:
    """The array in float64, checked to be the dtype that the call returned."""
    return np.asarray(x).astype(np.float64)


def assert_within(got: Any, want: Any, bound: float, dtype: Any) -> None:
    """Compares to an absolute bound and half a unit of the result's own dtype."""
    assert (got.shape, got.dtype) == (want.shape, dtype)
    allowed = bound + (BFLOAT16_RTOL if dtype == BFLOAT16 else 2.0**-22) * np.abs(want)
    np.testing.assert_array_less(np.abs(float64(got) - want), allowed)


def assert_product(got: Any, x: np.ndarray, y: np.ndarray, dtype: Any = FLOAT32) -> None:
    """Compares with the float64 product: K products summed in float32, then one rounding."""
    want = float64(x) @ float64(y)
    assert (got.shape, got.dtype) == (want.shape, dtype)
    summed = x.shape[1] * 2.0**-24 * (np.abs(float64(x)) @ np.abs(float64(y)))
    once = BFLOAT16_RTOL * (np.abs(want) + summed) if dtype == BFLOAT16 else 0.0
    np.testing.assert_array_less(np.abs(float64(got) - want), summed + once + 1e-30)


def for_gelu(seed: int, M: int, K: int, N: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Matrices whose product has size 1, where GELU is neither zero nor the identity."""
    y = matrix(seed + 1, K, N, np.float64) / (100 * np.sqrt(K))
    return matrix(seed, M, K, dtype), y.astype(dtype)


def assert_gelu_of_product(got: Any, want: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Compares with GELU of a product in float64, rounded once from sums in float32."""
    assert (got.shape, got.dtype) == (want.shape, x.dtype)
    terms = np.abs(float64(x)) @ np.abs(float64(y))
    # The slope of GELU is below 1.13; tanh and its argument add a few roundings of |z|.
    atol = 1.13 * x.shape[1] * 2.0**-24 * terms + 1e-6 * np.abs(float64(x) @ float64(y)) + 1e-6
    error = np.abs(float64(got) - want)
    np.testing.assert_array_less(error, atol + (RTOL[x.dtype] + 1e-6) * np.abs(want))
