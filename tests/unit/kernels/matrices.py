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


def matrix(seed: int, M: int, N: int, dtype: Any) -> np.ndarray:
    """A matrix of normal numbers times 10, reproducible from the seed."""
    return (10 * np.random.default_rng(seed).standard_normal((M, N))).astype(dtype)


def float64(x: Any) -> np.ndarray:
    """The array in float64, checked to be the dtype that the call returned."""
    return np.asarray(x).astype(np.float64)
