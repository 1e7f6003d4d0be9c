"""A running sum by `lax.scan`, which stacks up one output for each step."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "passes on CPU, fails to compile"
SYMPTOM = "ValueError while lowering: Scan with 1 extensive output(s) is not supported"
RULE = "A loop in a TPU kernel has carries only: read and write each step through refs."
FIRST_CAUGHT = "lower"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "passed",
    "lower": "refused",
    "compile": "refused",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Sum row after row, and let scan collect the sums."""

    def step(total: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        return total + row, total + row

    _, o_ref[...] = lax.scan(step, jnp.zeros(x_ref.shape[1], x_ref.dtype), x_ref[...])


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Sum row after row, and store each sum where it belongs."""

    def step(i: jax.Array, total: jax.Array) -> jax.Array:
        total = total + x_ref[pl.ds(i, 1), :]
        o_ref[pl.ds(i, 1), :] = total
        return total

    lax.fori_loop(0, x_ref.shape[0], step, jnp.zeros((1, x_ref.shape[1]), x_ref.dtype))


def running_sums(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels on x as a whole."""
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def broken(x: jax.Array) -> jax.Array:
    """Return the running sums of the rows of x, (16, 128) float32."""
    return running_sums(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Return the running sums of the rows of x, (16, 128) float32."""
    return running_sums(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return the running sums in float64."""
    return np.cumsum(np.asarray(x, np.float64), axis=0)


def cases() -> tuple[Case, ...]:
    """Return a matrix whose sums are exact in float32."""
    return (Case("16 rows", (np.arange(16 * 128, dtype=np.float32).reshape(16, 128),)),)
