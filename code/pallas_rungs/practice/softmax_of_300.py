"""Exercise: rows of a length that Triton has no tensors for."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pltriton

from pallas_rungs.kernels.softmax import softmax_kernel
from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

Softmax = Callable[[Any], Any]

M = 64
N = 300
BM = 16


def starter(x: jax.Array) -> jax.Array:
    """Where to begin: blocks of whole rows, as on a TPU."""
    rows = pl.BlockSpec((16, 300), lambda i: (i, 0))
    shares: jax.Array = pl.pallas_call(
        softmax_kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((64, 300), jnp.float32),
        compiler_params=pltriton.CompilerParams(num_warps=4),
    )(x)
    return shares


def solution(x: jax.Array) -> jax.Array:
    """Blocks of 512 columns; those that the array lacks are -inf, whose exponential is 0."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        there = lax.broadcasted_iota(jnp.int32, (16, 512), 1) < 300
        shown = jnp.where(there, x_ref[...], -jnp.inf)
        e = jnp.exp(shown - jnp.max(shown, axis=1, keepdims=True))
        o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)

    return in_blocks_of_512(kernel, x)


def in_blocks_of_512(kernel: Any, x: jax.Array) -> jax.Array:
    """Call a kernel on x in blocks of 16 rows and 512 columns, through Triton."""
    rows = pl.BlockSpec((16, 512), lambda i: (i, 0))
    shares: jax.Array = pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((64, 300), jnp.float32),
        compiler_params=pltriton.CompilerParams(num_warps=4),
    )(x)
    return shares


def without_a_mask(x: jax.Array) -> jax.Array:
    """Wrong: whatever the missing columns hold takes part."""
    return in_blocks_of_512(softmax_kernel, x)


def zeros_for_the_missing(x: jax.Array) -> jax.Array:
    """Wrong: a zero has an exponential, too."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        there = lax.broadcasted_iota(jnp.int32, (16, 512), 1) < 300
        shown: Any = jnp.where(there, x_ref[...], 0)
        softmax_kernel(shown, o_ref)

    return in_blocks_of_512(kernel, x)


WRONG: tuple[tuple[Softmax, str], ...] = (
    (starter, "power of 2"),
    (without_a_mask, "columns that the array does not have"),
    (zeros_for_the_missing, "exp of 0 is 1"),
)


def check(softmax: Softmax) -> Report:
    """Run ``softmax`` in the interpreter, and lower it for an H100.

    Args:
        softmax: takes x, (64, 300), float32, and returns the softmax of each row, by a kernel.

    Returns:
        The report, when it lowers.

    Raises:
        AssertionError: numbers differ or it does not lower; says where, and what to look at.
    """
    x = np.random.default_rng(0).standard_normal((M, N)).astype(np.float32)

    def reference(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    wanted = reference(x.astype(np.float64))
    highest = np.maximum(x.max(axis=1, keepdims=True), 0)
    e = np.exp(x - highest)
    hints = (
        Hint(
            "the columns that the array does not have took part: a masked load says nothing of "
            "what they hold. Put something there that changes neither maximum nor sum",
            has_nan,
        ),
        Hint(
            "exp of 0 is 1, so that each column that the array does not have adds to the sum. "
            "Which number has the exponential 0?",
            close_to(e / (e.sum(axis=1, keepdims=True) + (512 - N) * np.exp(-highest))),
        ),
    )
    call = "softmax(x)"
    got = run(softmax, x, call=call)
    agree(got, wanted, call=call, rtol=1e-5, atol=1e-6, hints=hints, dtype=np.float32)
    return climbs(
        softmax,
        x,
        reference=reference,
        rungs=("lower",),
        chips=("h100",),
        name=getattr(softmax, "__name__", "softmax"),
    )
