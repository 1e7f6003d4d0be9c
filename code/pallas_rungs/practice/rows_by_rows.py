"""Exercise: x @ y.T from the rows of both, without ever writing a transposed y."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, run

Product = Callable[[jax.Array, jax.Array], jax.Array]

M = 24
N = 256
K = 128
BM = 8
BN = 128


def _product(x: jax.Array, y: jax.Array, body: Any, y_map: Any, o_map: Any) -> jax.Array:
    product: jax.Array = pl.pallas_call(
        body,
        grid=(M // BM, N // BN),
        in_specs=[pl.BlockSpec((BM, K), lambda i, j: (i, 0)), pl.BlockSpec((BN, K), y_map)],
        out_specs=pl.BlockSpec((BM, BN), o_map),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
    )(x, y)
    return product


def starter(x: jax.Array, y: jax.Array) -> jax.Array:
    """Where to begin: the specs are those of x @ y, and y is no (K, N) matrix."""

    def kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
        o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    product: jax.Array = pl.pallas_call(
        kernel,
        grid=(M // BM, N // BN),
        in_specs=[
            pl.BlockSpec((BM, K), lambda i, j: (i, 0)),
            pl.BlockSpec((K, BN), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
    )(x, y)
    return product


def solution(x: jax.Array, y: jax.Array) -> jax.Array:
    """Program (i, j) gets band i of x and band j of y, both of them bands of rows."""

    def kernel(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
        o_ref[...] = jnp.dot(x_ref[...], y_ref[...].T, preferred_element_type=jnp.float32)

    product: jax.Array = pl.pallas_call(
        kernel,
        grid=(M // BM, N // BN),
        in_specs=[
            pl.BlockSpec((BM, K), lambda i, j: (i, 0)),
            pl.BlockSpec((BN, K), lambda i, j: (j, 0)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
    )(x, y)
    return product


def _times_turned(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...].T, preferred_element_type=jnp.float32)


def _times_unturned(x_ref: jax.Ref, y_ref: jax.Ref, o_ref: jax.Ref) -> None:
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


def map_not_swapped(x: jax.Array, y: jax.Array) -> jax.Array:
    """Wrong: the body turns the block, and the map still walks along the columns of y."""
    return _product(x, y, _times_turned, lambda i, j: (0, j), lambda i, j: (i, j))


def block_not_turned(x: jax.Array, y: jax.Array) -> jax.Array:
    """Wrong: the map walks down the rows of y, and the body multiplies by the block as it is."""
    return _product(x, y, _times_unturned, lambda i, j: (j, 0), lambda i, j: (i, j))


def output_transposed(x: jax.Array, y: jax.Array) -> jax.Array:
    """Wrong: the output's map is swapped as well, and nothing of the output was."""
    return _product(x, y, _times_turned, lambda i, j: (j, 0), lambda i, j: (j, i))


WRONG: tuple[tuple[Product, str], ...] = (
    (map_not_swapped, "columns 128 and up repeat"),
    (block_not_turned, "multiplied by the block of y as it lies"),
    (output_transposed, "values differ"),
)


def check(product: Product) -> Report:
    """Run ``product`` and climb with it as far as lowering.

    Args:
        product: takes x, f32[24, 128], and y, f32[256, 128]; returns x @ y.T, f32[24, 256].

    Returns:
        The report, when every rung passed.

    Raises:
        AssertionError: numbers differ or a rung did not pass; says where, and what to look at.
    """
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (M, K)).astype(np.float32)
    y = rng.integers(-4, 5, (N, K)).astype(np.float32)

    def reference(x: Any, y: Any) -> Any:
        return x @ y.T

    bands = [y[start : start + BN] for start in range(0, N, BN)]
    hints = (
        Hint(
            "columns 128 and up repeat the first ones: every j received the same rows of y. Its "
            "block walks down the rows now, so j belongs in the first place of its index map",
            close_to(np.concatenate([x @ bands[0].T] * len(bands), axis=1)),
        ),
        Hint(
            "x was multiplied by the block of y as it lies. The block is (bn, K): the body has to "
            "turn it, and because the block is square no shape told you",
            close_to(np.concatenate([x @ band for band in bands], axis=1)),
        ),
    )
    call = "rows_by_rows(x, y)"
    got = run(product, x, y, call=call)
    # Small integers: every sum is exact in float32, in whichever order it is taken.
    agree(got, reference(x, y), call=call, rtol=0, atol=0, hints=hints, dtype=np.float32)
    return climbs(
        product,
        x,
        y,
        reference=reference,
        rungs=("trace", "interpret", "simulate", "lower"),
        rtol=0.0,
        atol=0.0,
        name=getattr(product, "__name__", "rows_by_rows"),
    )
