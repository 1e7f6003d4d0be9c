"""Exercise: a Gram matrix in bfloat16 that is rounded once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

Gram = Callable[[Any], Any]

ROWS = 2048
BLOCK_ROWS = 128


def gram_kernel(x_ref: Any, o_ref: Any) -> None:
    """Add the Gram matrix of a block of rows to the output block."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    x = x_ref[...]
    o_ref[...] += jnp.dot(x.T, x, preferred_element_type=jnp.float32).astype(o_ref.dtype)


def starter(x: jax.Array) -> jax.Array:
    """Sixteen programs, each with 128 rows of x, bf16[2048, 128]."""
    gram: jax.Array = pl.pallas_call(
        gram_kernel,
        grid=(ROWS // BLOCK_ROWS,),
        in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.bfloat16),
    )(x)
    return gram


def summing_kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
    """Sum in float32 scratch; round and store on the last visit."""
    i = pl.program_id(0)

    @pl.when(i == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    x = x_ref[...]
    acc_ref[...] += jnp.dot(x.T, x, preferred_element_type=jnp.float32)

    @pl.when(i == pl.num_programs(0) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def solution(x: jax.Array) -> jax.Array:
    """The same grid, with a float32 accumulator of its own."""
    gram: jax.Array = pl.pallas_call(
        summing_kernel,
        grid=(ROWS // BLOCK_ROWS,),
        in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
    )(x)
    return gram


def _accumulating(kernel: Callable[..., None], x: jax.Array, dtype: Any) -> jax.Array:
    gram: jax.Array = pl.pallas_call(
        kernel,
        grid=(ROWS // BLOCK_ROWS,),
        in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((128, 128), dtype),
    )(x)
    return gram


def _with_scratch(kernel: Callable[..., None], x: jax.Array, dtype: Any) -> jax.Array:
    gram: jax.Array = pl.pallas_call(
        kernel,
        grid=(ROWS // BLOCK_ROWS,),
        in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((128, 128), dtype)],
    )(x)
    return gram


def scratch_not_cleared(x: jax.Array) -> jax.Array:
    """Wrong: the scratch starts out undefined."""

    def kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
        x = x_ref[...]
        acc_ref[...] += jnp.dot(x.T, x, preferred_element_type=jnp.float32)
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)

    return _with_scratch(kernel, x, jnp.float32)


def scratch_in_bfloat16(x: jax.Array) -> jax.Array:
    """Wrong: scratch of the output's dtype rounds as the output does."""

    def kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
        gram_kernel(x_ref, acc_ref)
        o_ref[...] = acc_ref[...]

    return _with_scratch(kernel, x, jnp.bfloat16)


def returns_float32(x: jax.Array) -> jax.Array:
    """Wrong: precise, but not what was asked for."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        gram_kernel(x_ref, o_ref)

    return _accumulating(kernel, x, jnp.float32)


def stores_the_last_block(x: jax.Array) -> jax.Array:
    """Wrong: cleared on every visit."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        x = x_ref[...]
        o_ref[...] = jnp.dot(x.T, x, preferred_element_type=jnp.float32).astype(o_ref.dtype)

    return _accumulating(kernel, x, jnp.bfloat16)


WRONG: tuple[tuple[Gram, str], ...] = (
    (scratch_not_cleared, "nothing fills scratch"),
    (scratch_in_bfloat16, "rounded after every block"),
    (returns_float32, "should have bfloat16.*on the last visit"),
    (stores_the_last_block, "the last block of rows alone"),
)


def check(function: Gram) -> None:
    """Run ``function`` in the interpreter, compare with float64, then climb as far as lowering.

    Args:
        function: takes x, bf16[2048, 128], and returns its Gram matrix, bf16[128, 128].

    Raises:
        AssertionError: the result has another dtype, is off by more than one rounding to bfloat16,
            or a rung did not pass; says what was found and what to look at.
    """
    call = "gram(x)"
    x = np.random.default_rng(0).uniform(0, 1, (ROWS, 128)).astype(jnp.bfloat16)
    x64 = x.astype(np.float64)
    want = x64.T @ x64
    last = x64[-BLOCK_ROWS:]
    # One rounding to bfloat16, and the summing of 2048 positive products in float32 before it.
    rtol = 2.0**-8 + ROWS * 2.0**-24
    hints = (
        Hint(
            "precise, and not yet rounded: keep the float32 sum in scratch, and store it as "
            "bfloat16 on the last visit.",
            lambda got, want: got.dtype == np.float32,
        ),
        Hint("nothing fills scratch or an output block before its first visit: clear it.", has_nan),
        Hint("that is the last block of rows alone: add to what the visits before have summed.",
             close_to(last.T @ last, rtol=0.01)),
        Hint("the sum is rounded after every block of rows: sum in float32 scratch, and round "
             "once, on the last visit.",
             close_to(want, rtol=0.05)),
    )  # fmt: skip
    got = run(function, x, call=call)
    agree(got, want, call=call, rtol=rtol, atol=0.0, hints=hints, dtype=jnp.bfloat16)
    climbs(
        function,
        x,
        reference=lambda x: x.T @ x,
        rtol=rtol,
        atol=0.0,
        rungs=("trace", "interpret", "simulate", "lower"),
        name="gram",
    )
