"""A sound matrix product with blocks so small that it moves its operands over and over."""

import jax
import numpy as np

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.matmul import matmul

GROUP = "only slow"
SYMPTOM = "every test passes and the kernel is many times slower than jnp.dot"
RULE = "Each block of x is fetched N / bn times and each of y M / bm times: bytes are the price."
FIRST_CAUGHT = "none"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "passed",
}


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply (32, 128) by (128, 256), float32, in 8 programs."""
    return matmul(x, y, block=(8, 128, 128))


def fixed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply (32, 128) by (128, 256), float32, in one program."""
    return matmul(x, y, block=(32, 128, 256))


def reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return two matrices of small integers, whose product is exact in float32."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (32, 128)).astype(np.float32)
    y = rng.integers(-4, 5, (128, 256)).astype(np.float32)
    return (Case("32 by 128 by 256", (x, y)),)
