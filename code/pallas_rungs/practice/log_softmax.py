"""Exercise: the logarithm of a row's softmax, where exponentials overflow and vanish."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, has_nan, run

Kernel = Callable[[Any, Any], None]

M = 24
N = 200
BM = 8


def log_softmax(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Call ``kernel`` on a grid of three programs, each given eight whole rows of x.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, both (8, 200).
        x: (24, 200), float32.

    Returns:
        (24, 200), float32: whatever the kernel has put there.
    """
    rows = pl.BlockSpec((BM, N), lambda i: (i, 0))
    logs: jax.Array = pl.pallas_call(
        kernel,
        grid=(M // BM,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
    )(x)
    return logs


def starter(x_ref: Any, o_ref: Any) -> None:
    """Where to begin: the formula, word for word."""
    e = jnp.exp(x_ref[...])
    o_ref[...] = jnp.log(e / jnp.sum(e, axis=1, keepdims=True))


def solution(x_ref: Any, o_ref: Any) -> None:
    """Subtract the maximum, then the logarithm of the sum: no quotient, no logarithm of 0."""
    x = x_ref[...]
    shifted = x - jnp.max(x, axis=1, keepdims=True)
    o_ref[...] = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))


def logarithm_of_the_quotient(x_ref: Any, o_ref: Any) -> None:
    """Wrong: a share that is too small for float32 is 0, and its logarithm is -inf."""
    x = x_ref[...]
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    o_ref[...] = jnp.log(e / jnp.sum(e, axis=1, keepdims=True))


def without_the_maximum(x_ref: Any, o_ref: Any) -> None:
    """Wrong: the exponentials of large numbers are infinite, and those of very small ones 0."""
    x = x_ref[...]
    o_ref[...] = x - jnp.log(jnp.sum(jnp.exp(x), axis=1, keepdims=True))


def over_the_block(x_ref: Any, o_ref: Any) -> None:
    """Wrong: maximum and sum run over all eight rows."""
    x = x_ref[...]
    shifted = x - jnp.max(x)
    o_ref[...] = shifted - jnp.log(jnp.sum(jnp.exp(shifted)))


WRONG: tuple[tuple[Kernel, str], ...] = (
    (logarithm_of_the_quotient, "the logarithm of a share that has become 0"),
    (without_the_maximum, "exp overflowed or vanished"),
    (over_the_block, "the shares of a row do not add up to 1"),
)


def check(kernel: Kernel) -> Report:
    """Run ``kernel`` and climb with it as far as lowering.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, both f32[8, 200], and writes the logarithm of the
            softmax of each row.

    Returns:
        The report, when every rung passed.

    Raises:
        AssertionError: numbers differ or a rung did not pass; says where, and what to look at.
    """
    # Rows around 0, 1000 and -1000, with a spread beyond that of float32's exponentials.
    x = np.random.default_rng(0).uniform(-100, 100, (M, N)).astype(np.float32)
    x += np.repeat(np.array([0, 1000, -1000], np.float32), BM)[:, None]

    def reference(x: Any) -> Any:
        shifted = x - x.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    hints = (
        Hint(
            "that is what happens when exp overflowed or vanished in all of a row: subtract the "
            "row's maximum first, so that the largest exponent is 0",
            lambda got, want: has_nan(got, want) or not np.isfinite(got[BM:]).any(),
        ),
        Hint(
            "-inf is the logarithm of a share that has become 0. Expand log(a / b) on paper: "
            "log(a) is the number that you had before exp",
            lambda got, want: bool(np.isneginf(got).any()),
        ),
        Hint(
            "the shares of a row do not add up to 1: say axis=1, keepdims=True in both reductions",
            lambda got, want: not np.allclose(np.exp(got).sum(axis=1), 1, rtol=1e-3),
        ),
    )
    call = "log_softmax(kernel, x)"
    wanted = reference(x.astype(np.float64))
    got = run(lambda x: log_softmax(kernel, x), x, call=call)
    # x near 1000 is a multiple of 2**-14, and so is the difference to the maximum: exact. What is
    # left are roundings of numbers up to 200.
    agree(got, wanted, call=call, rtol=1e-6, atol=1e-5, hints=hints, dtype=np.float32)
    return climbs(
        lambda x: log_softmax(kernel, x),
        x,
        reference=reference,
        rungs=("trace", "interpret", "simulate", "lower"),
        rtol=1e-6,
        atol=1e-5,
        name=getattr(kernel, "__name__", "kernel"),
    )
