"""Exercise: scale and shift a vector block by block, with two scalars as inputs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, run

Axpy = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]

N = 1000
BLOCK = 128


def starter(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """Where to begin: the kernel sees the first 128 elements of x, and no scalar."""

    def kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
        o_ref[...] = x_ref[...]

    blocks = pl.BlockSpec((BLOCK,), lambda i: (i,))
    scaled: jax.Array = pl.pallas_call(
        kernel,
        grid=(1,),
        in_specs=[blocks],
        out_specs=blocks,
        out_shape=jax.ShapeDtypeStruct((N,), jnp.float32),
    )(x)
    return scaled


def solution(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """Eight programs, the last of them over the edge; the scalars whole, in scalar memory."""

    def kernel(x_ref: jax.Ref, alpha_ref: jax.Ref, beta_ref: jax.Ref, o_ref: jax.Ref) -> None:
        o_ref[...] = alpha_ref[0] * x_ref[...] + beta_ref[0]

    blocks = pl.BlockSpec((BLOCK,), lambda i: (i,))
    scalar = pl.BlockSpec(memory_space=pltpu.SMEM)
    scaled: jax.Array = pl.pallas_call(
        kernel,
        grid=(pl.cdiv(N, BLOCK),),
        in_specs=[blocks, scalar, scalar],
        out_specs=blocks,
        out_shape=jax.ShapeDtypeStruct((N,), jnp.float32),
    )(x, alpha, beta)
    return scaled


def _variant(grid: int, block_map: Any, scalar_map: Any, swapped: bool = False) -> Axpy:
    def axpy(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
        def kernel(x_ref: jax.Ref, alpha_ref: jax.Ref, beta_ref: jax.Ref, o_ref: jax.Ref) -> None:
            o_ref[...] = alpha_ref[0] * x_ref[...] + beta_ref[0]

        blocks, scalar = pl.BlockSpec((BLOCK,), block_map), pl.BlockSpec((1,), scalar_map)
        scaled: jax.Array = pl.pallas_call(
            kernel,
            grid=(grid,),
            in_specs=[blocks, scalar, scalar],
            out_specs=blocks,
            out_shape=jax.ShapeDtypeStruct((N,), jnp.float32),
        )(x, *((beta, alpha) if swapped else (alpha, beta)))
        return scaled

    return axpy


def element_offsets(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """Wrong: the index map returns where a block starts."""
    return _variant(8, lambda i: (i * BLOCK,), lambda i: (0,))(x, alpha, beta)


def moving_scalars(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """Wrong: program i asks for block i of arrays that have one block."""
    return _variant(8, lambda i: (i,), lambda i: (i,))(x, alpha, beta)


def dropped_tail(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """Wrong: 1000 // 128 programs leave the last 104 elements to nobody."""
    return _variant(N // BLOCK, lambda i: (i,), lambda i: (0,))(x, alpha, beta)


def swapped_scalars(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """Wrong: the refs come in the order of the arguments, and these are beta and alpha."""
    return _variant(8, lambda i: (i,), lambda i: (0,), swapped=True)(x, alpha, beta)


WRONG: tuple[tuple[Axpy, str], ...] = (
    (element_offsets, "index map returns which block"),
    (moving_scalars, "Out-of-bounds block index.*Hint: alpha and beta have one block"),
    (dropped_tail, "nobody writes the last 104"),
    (swapped_scalars, "alpha and beta are swapped"),
)


def _right(got: Any, want: Any) -> Any:
    return np.isclose(got, want, rtol=1e-6, atol=1e-5)


def check(axpy: Axpy) -> Report:
    """Run ``axpy`` and climb with it as far as lowering.

    Args:
        axpy: takes x, f32[1000], and alpha and beta, f32[1]; returns alpha * x + beta, f32[1000],
            computed by a kernel in blocks of 128.

    Returns:
        The report, when every rung passed.

    Raises:
        AssertionError: numbers differ or a rung did not pass; says where, and what to look at.
    """
    x = np.linspace(-3, 5, N, dtype=np.float32)
    alpha, beta = np.array([2.5], np.float32), np.array([-1.0], np.float32)

    def reference(x: Any, alpha: Any, beta: Any) -> Any:
        return alpha * x + beta

    full = N // BLOCK * BLOCK
    hints = (
        Hint(
            "alpha and beta are swapped: a kernel's refs come in the order of the call's arguments",
            lambda got, want: _right(got, beta * x.astype(np.float64) + alpha).all(),
        ),
        Hint(
            f"nobody writes the last {N - full} elements: {N} // {BLOCK} rounds the grid down, and "
            "pl.cdiv rounds it up",
            lambda got, want: _right(got, want)[:full].all() and not _right(got, want)[full:].any(),
        ),
        Hint(
            "the first block is right and the next one is not. An index map returns which block, "
            "not where it starts; and the grid has to reach all eight",
            lambda got, want: (
                _right(got, want)[:BLOCK].all() and not _right(got, want)[BLOCK : 2 * BLOCK].any()
            ),
        ),
    )
    call = "axpy(x, alpha, beta)"
    got = run(axpy, x, alpha, beta, call=call)
    want = reference(x.astype(np.float64), alpha, beta)
    agree(got, want, call=call, rtol=1e-6, atol=1e-5, hints=hints, dtype=np.float32)
    try:
        return climbs(
            axpy,
            x,
            alpha,
            beta,
            reference=reference,
            rungs=("trace", "interpret", "simulate", "lower"),
            rtol=1e-6,
            atol=1e-5,
            name=getattr(axpy, "__name__", "axpy"),
        )
    except AssertionError as error:
        if "Out-of-bounds block index" not in str(error):
            raise
        raise AssertionError(
            f"{error}\nHint: alpha and beta have one block each, and every program wants that one. "
            "interpret=True moved the others back to it; a chip does not."
        ) from error
