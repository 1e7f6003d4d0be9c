"""Exercise: the row sums that the backward pass of attention starts with."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.practice.judging import Hint, agree, close_to, run

Kernel = Callable[[Any, Any, Any], None]

QUERIES, D, BLOCK = 200, 128, 128


def row_sums(kernel: Kernel, do: jax.Array, o: jax.Array) -> jax.Array:
    """Call ``kernel`` on a grid of two programs, each given 128 rows of ``do`` and of ``o``.

    Args:
        kernel: takes ``do_ref`` and ``o_ref``, bf16[128, 128], and ``delta_ref``, f32[1, 128]: a
            row with one number for each of the block's queries.
        do: (200, 128), bfloat16.
        o: As do.

    Returns:
        (1, 200), float32: whatever the kernel has put there.
    """
    rows = pl.BlockSpec((BLOCK, D), lambda i: (i, 0))
    delta: jax.Array = pl.pallas_call(
        kernel,
        grid=(pl.cdiv(QUERIES, BLOCK),),
        in_specs=[rows, rows],
        out_specs=pl.BlockSpec((1, BLOCK), lambda i: (0, i)),
        out_shape=jax.ShapeDtypeStruct((1, QUERIES), jnp.float32),
    )(do, o)
    return delta


def starter(do_ref: Any, o_ref: Any, delta_ref: Any) -> None:
    """Take the first column of the products, and no sum."""
    products = do_ref[...].astype(jnp.float32) * o_ref[...].astype(jnp.float32)
    delta_ref[...] = products[:, :1].T


def solution(do_ref: Any, o_ref: Any, delta_ref: Any) -> None:
    """Multiply and sum in float32, then lay the column of sums out as a row."""
    products = do_ref[...].astype(jnp.float32) * o_ref[...].astype(jnp.float32)
    delta_ref[...] = jnp.sum(products, axis=1, keepdims=True).T


def over_the_queries(do_ref: Any, o_ref: Any, delta_ref: Any) -> None:
    """Wrong: of a square block both sums have the shape that is asked for."""
    products = do_ref[...].astype(jnp.float32) * o_ref[...].astype(jnp.float32)
    delta_ref[...] = jnp.sum(products, axis=0, keepdims=True)


def in_bfloat16(do_ref: Any, o_ref: Any, delta_ref: Any) -> None:
    """Wrong: each product is rounded to eight bits before it is summed."""
    products = (do_ref[...] * o_ref[...]).astype(jnp.bfloat16)
    total = jnp.sum(products.astype(jnp.float32), axis=1, keepdims=True)
    delta_ref[...] = total.astype(jnp.bfloat16).astype(jnp.float32).T


def of_the_gradient_alone(do_ref: Any, o_ref: Any, delta_ref: Any) -> None:
    """Wrong: the output takes no part."""
    del o_ref
    delta_ref[...] = jnp.sum(do_ref[...].astype(jnp.float32), axis=1, keepdims=True).T


WRONG: tuple[tuple[Kernel, str], ...] = (
    (over_the_queries, "summed over the queries"),
    (in_bfloat16, "eight bits"),
    (of_the_gradient_alone, "o takes no part"),
)


def check(kernel: Kernel) -> None:
    """Compare the row sums with float64, to the error of summing 128 products in float32.

    Args:
        kernel: as `row_sums` calls it.

    Raises:
        AssertionError: a sum is wrong; says where, and what to look at.
    """
    do, o = np.random.default_rng(0).standard_normal((2, QUERIES, D)).astype(jnp.bfloat16)
    do64, o64 = do.astype(np.float64), o.astype(np.float64)
    got = run(lambda do, o: row_sums(kernel, do, o), do, o, call="row_sums(kernel, do, o)")
    blocks = [np.sum((do64 * o64)[a : a + BLOCK], axis=0) for a in (0, BLOCK)]
    want = np.sum(do64 * o64, axis=1)[None]
    hints = (
        Hint(
            "The products were summed over the queries of the block, not over d.",
            lambda got, want: np.allclose(got[0, :BLOCK], blocks[0], rtol=1e-4, atol=1e-4),
        ),
        Hint("These are the row sums of do: o takes no part.", close_to(do64.sum(axis=1)[None])),
        Hint(
            "Close, and rounded to eight bits on the way: convert to float32 before you multiply, "
            "and keep the sum in float32.",
            lambda got, want: bool(np.abs(got - want).max() < 0.5),
        ),
    )
    size = np.sum(np.abs(do64 * o64), axis=1).max()
    agree(got, want, call="delta", rtol=0, atol=D * 2.0**-24 * size, hints=hints)
