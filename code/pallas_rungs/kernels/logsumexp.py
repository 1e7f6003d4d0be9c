"""Logsumexp of every row, from a running maximum and a running sum over blocks of columns."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import LANES, block_size, check_block, check_matrix

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def logsumexp_kernel(
    x_ref: jax.Ref, o_ref: jax.Ref, m_ref: jax.Ref, s_ref: jax.Ref, *, N: int
) -> None:
    """Fold a (bm, bn) block into the running maximum m and sum s, both (bm, 1); end with m + log s.

    At every step s is the sum of exp(x - m) over the columns seen so far.
    """
    j = pl.program_id(1)

    # The state of a row of which nothing has been seen: the identities of max and of +.
    @pl.when(j == 0)
    def _() -> None:
        m_ref[...] = jnp.full_like(m_ref, -jnp.inf)
        s_ref[...] = jnp.zeros_like(s_ref)

    x = x_ref[...].astype(jnp.float32)
    bn = x.shape[1]
    if N % bn:  # what lies past the end is not part of the row: -inf adds nothing
        column = j * bn + jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
        x = jnp.where(column < N, x, -jnp.inf)

    m = jnp.maximum(m_ref[...], jnp.max(x, axis=1, keepdims=True))
    # inf - inf is NaN, so an infinite maximum is not subtracted: exp sees the infinity itself.
    shift = jnp.where(jnp.abs(m) < jnp.inf, m, 0.0)
    rescaled = s_ref[...] * jnp.exp(m_ref[...] - shift)
    s_ref[...] = rescaled + jnp.sum(jnp.exp(x - shift), axis=1, keepdims=True)
    m_ref[...] = m

    @pl.when(j == pl.num_programs(1) - 1)
    def _() -> None:
        o_ref[...] = (shift + jnp.log(s_ref[...])).T  # a column of rows becomes a row of lanes


def logsumexp(
    x: jax.Array, *, block: tuple[int, int] = (256, 1024), interpret: Any = False
) -> jax.Array:
    """Return log(sum(exp(x))) of each row, without a row ever being whole in VMEM.

    A row of -inf alone gives -inf, a row with +inf gives +inf (also next to -inf), and one with a
    NaN gives NaN.

    Args:
        x: (M, N), float32 or bfloat16.
        block: (bm, bn). A block that is longer than an axis is cut down to it; the last block of
            either axis may be partial. bm comes in 128s, since the bm results of a block lie side
            by side in the lanes of the output.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        (M,), float32.

    Raises:
        ValueError: x is no matrix of those dtypes, or a block size is neither the whole axis nor a
            multiple of 128.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16"))
    check_block("block", block, ("bm", "bn"))
    bm = block_size("bm", block[0], M, LANES)
    bn = block_size("bn", block[1], N, LANES)

    out: jax.Array = pl.pallas_call(
        partial(logsumexp_kernel, N=N),
        grid=(pl.cdiv(M, bm), pl.cdiv(N, bn)),  # all blocks of a row before the next rows
        in_specs=[pl.BlockSpec((bm, bn), lambda i, j: (i, j))],
        # (1, M) and not (M, 1): a last axis of one element would be padded to 128 lanes in HBM.
        out_specs=pl.BlockSpec((1, bm), lambda i, j: (0, i)),
        out_shape=jax.ShapeDtypeStruct((1, M), jnp.float32),
        scratch_shapes=[pltpu.VMEM((bm, 1), jnp.float32), pltpu.VMEM((bm, 1), jnp.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary"),
        ),
        interpret=interpret,
    )(x)
    return out[0]


def logsumexp_reference(x: jax.Array) -> np.ndarray:
    """Return log(sum(exp(x))) of each row in float64, the row's maximum subtracted and added."""
    x64 = np.asarray(x, np.float64)
    m = x64.max(axis=1, keepdims=True)
    shift = np.where(np.isinf(m), 0.0, m)
    with np.errstate(divide="ignore", over="ignore"):  # log(0) and exp(inf) are meant
        return np.asarray((shift + np.log(np.exp(x64 - shift).sum(axis=1, keepdims=True)))[:, 0])


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks that fill the rows and blocks that do not, offsets, infinities."""
    rng = np.random.default_rng(0)

    def rows(M: int, N: int, offset: float = 0.0, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(offset + 3 * rng.standard_normal((M, N))).astype(dtype)

    infinite = rows(16, 2048)
    infinite[1] = -np.inf  # a row of nothing
    infinite[2, :1024] = -np.inf  # nothing in the first block
    infinite[3, 1024:] = -np.inf  # nothing in the last block
    infinite[4, 5] = np.inf  # everything, seen first
    infinite[5, 1500] = np.inf  # everything, seen last
    infinite[6] = -np.inf
    infinite[6, 7] = np.inf
    infinite[7, 9] = np.nan
    falling = -np.linspace(0, 500, 2048, dtype=np.float32)[None, :]

    # The result is near its largest term: log s has an error of some units of 2**-24, and the
    # last sum is rounded to a float32 of the size of the maximum.
    rtol, atol = 2.0**-22, 2.0**-20
    return (
        Case("two blocks of columns", (rows(256, 2048),), rtol, atol),
        Case("last blocks partial", (rows(300, 1500),), rtol, atol),
        Case("one element", (rows(1, 1),), rtol, atol, note="logsumexp of one number is it"),
        Case("one row", (rows(1, 2500),), rtol, atol),
        Case("one column", (rows(300, 1),), rtol, atol),
        Case("infinities and a NaN", (infinite,), rtol, atol),
        Case("large offset", (rows(16, 2048, 1e4),), rtol, atol, note="exp(1e4) is infinite"),
        Case("large negative offset", (rows(16, 2048, -1e4),), rtol, atol, note="exp(-1e4) is 0"),
        Case("the maximum never moves", (falling,), rtol, atol),
        Case("the maximum moves each block", (falling[:, ::-1].copy(),), rtol, atol),
        Case("bfloat16", (rows(256, 2048, dtype=jnp.bfloat16),), rtol, atol, note="float32 sums"),
    )
