"""A sound matrix product with blocks that do not fit into the chip's vector memory.

The verdicts are those for v5e, whose kernels get 16 MiB unless they ask for more. The compiler
accepts the same program for v6e and TPU7x.
"""

import jax
import numpy as np

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.matmul import matmul

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "RESOURCE_EXHAUSTED from the compiler, after every other rung has passed"
RULE = "Each block that is streamed in takes its bytes twice; only the compiler adds them up."
FIRST_CAUGHT = "compile"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "passed",
    "compile": "refused",
}


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply (64, 4096) by (4096, 1024), float32, with all of K in a block: over 18 MiB."""
    return matmul(x, y, block=(64, 4096, 512))


def fixed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply (64, 4096) by (4096, 1024), float32, with 512 of K in a block: under 3 MiB."""
    return matmul(x, y, block=(64, 512, 512))


def reference(x: jax.Array, y: jax.Array) -> np.ndarray:
    """Return x @ y in float64."""
    return np.asarray(x, np.float64) @ np.asarray(y, np.float64)


def cases() -> tuple[Case, ...]:
    """Return two matrices of small integers, whose product is exact in float32."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (64, 4096)).astype(np.float32)
    y = rng.integers(-4, 5, (4096, 1024)).astype(np.float32)
    return (Case("K of 4096", (x, y)),)
