"""Exercise: which blocks of keys does attention with a sliding window need?"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.practice.judging import Hint, agree, close_to, has_nan, run

BlocksSeen = Callable[[Any, int, int, int], tuple[Any, Any]]

T, D, WINDOW, BLOCK = 768, 32, 129, (256, 128)


def windowed_attention(
    blocks_seen: BlocksSeen, q: jax.Array, k: jax.Array, v: jax.Array
) -> jax.Array:
    """Attention in which query r sees the 129 keys r - 128 … r, as far as they exist.

    Args:
        blocks_seen: called with a block of queries i, bq, bk and the window; returns the first and
            the last block of keys that any query of the block sees. Others are skipped.
        q: (768, 32), float32.
        k: As q.
        v: As q.

    Returns:
        (768, 32), float32.
    """
    bq, bk = BLOCK

    def kernel(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any, m_ref: Any, l_ref: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)
        first, last = blocks_seen(i, bq, bk, WINDOW)

        @pl.when(j == 0)
        def _() -> None:
            m_ref[...] = jnp.full_like(m_ref, -jnp.inf)
            l_ref[...] = jnp.zeros_like(l_ref)
            o_ref[...] = jnp.zeros_like(o_ref)

        @pl.when((first <= j) & (j <= last))
        def _() -> None:
            s = D**-0.5 * jnp.dot(q_ref[...], k_ref[...].T, preferred_element_type=jnp.float32)
            row = i * bq + jax.lax.broadcasted_iota(jnp.int32, s.shape, 0)
            column = j * bk + jax.lax.broadcasted_iota(jnp.int32, s.shape, 1)
            s = jnp.where((column <= row) & (row - column < WINDOW), s, -jnp.inf)
            m = jnp.maximum(m_ref[...], jnp.max(s, axis=1, keepdims=True))
            shift = jnp.where(m == -jnp.inf, 0.0, m)  # the first block may hold nothing for a row
            alpha, p = jnp.exp(m_ref[...] - shift), jnp.exp(s - shift)
            l_ref[...] = alpha * l_ref[...] + jnp.sum(p, axis=1, keepdims=True)
            o_ref[...] = alpha * o_ref[...] + jnp.dot(p, v_ref[...])
            m_ref[...] = m

        @pl.when(j == pl.num_programs(1) - 1)
        def _() -> None:
            o_ref[...] = o_ref[...] / l_ref[...]

    def keys(i: Any, j: Any) -> tuple[Any, int]:
        first, last = blocks_seen(i, bq, bk, WINDOW)
        return jnp.clip(jnp.clip(j, first, last), 0, T // bk - 1), 0

    o: jax.Array = pl.pallas_call(
        kernel,
        grid=(T // bq, T // bk),
        in_specs=[
            pl.BlockSpec((bq, D), lambda i, j: (i, 0)),
            pl.BlockSpec((bk, D), keys),
            pl.BlockSpec((bk, D), keys),
        ],
        out_specs=pl.BlockSpec((bq, D), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((T, D), jnp.float32),
        scratch_shapes=[pltpu.VMEM((bq, 1), jnp.float32)] * 2,
    )(q, k, v)
    return o


def starter(i: Any, bq: int, bk: int, window: int) -> tuple[Any, Any]:
    """Return block i of the keys alone, as if blocks were square and a window ended at its edge."""
    return i, i


def solution(i: Any, bq: int, bk: int, window: int) -> tuple[Any, Any]:
    """Return the block of the first key of the first query, and that of the last query's last."""
    first_key = jnp.maximum(i * bq - (window - 1), 0)
    last_key = (i + 1) * bq - 1
    return first_key // bk, last_key // bk


def skips_nothing(i: Any, bq: int, bk: int, window: int) -> tuple[Any, Any]:
    """Wrong: right numbers, and as many blocks as without a window."""
    return 0 * i, ((i + 1) * bq - 1) // bk


def from_the_last_query(i: Any, bq: int, bk: int, window: int) -> tuple[Any, Any]:
    """Wrong: the first queries of the block look further back than the last one."""
    last_query = (i + 1) * bq - 1
    return jnp.maximum(last_query - (window - 1), 0) // bk, last_query // bk


def counts_one_key_more(i: Any, bq: int, bk: int, window: int) -> tuple[Any, Any]:
    """Wrong: a window of w keys reaches back w - 1 keys; a block too many."""
    return jnp.maximum(i * bq - window, 0) // bk, ((i + 1) * bq - 1) // bk


WRONG: tuple[tuple[BlocksSeen, str], ...] = (
    (skips_nothing, "12 programs compute, and 8 would do"),
    (from_the_last_query, "first query of the block"),
    (counts_one_key_more, "10 programs compute, and 8 would do.*block 1 of queries"),
)


def check(blocks_seen: BlocksSeen) -> None:
    """Compare the numbers with float64, then count the programs that compute.

    Args:
        blocks_seen: as `windowed_attention` calls it.

    Raises:
        AssertionError: a number is wrong, or more programs compute than have a key to see.
    """
    q, k, v = np.random.default_rng(0).standard_normal((3, T, D)).astype(np.float32)
    got = run(
        lambda q, k, v: windowed_attention(blocks_seen, q, k, v), q, k, v, call="the attention"
    )
    row, column = np.indices((T, T))
    seen = (column <= row) & (row - column < WINDOW)

    def attention(seen: Any) -> Any:
        s = np.where(seen, D**-0.5 * q.astype(np.float64) @ k.T.astype(np.float64), -np.inf)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True) @ v

    bq, bk = BLOCK
    late = np.maximum((row // bq + 1) * bq - WINDOW, 0) // bk
    hints = (
        Hint(
            "Keys are missing for the first query of the block: it looks further back than the "
            "last one.",
            close_to(attention(seen & (column // bk >= late))),
        ),
        Hint("NaN: some query saw no key at all.", has_nan),
        Hint(
            "Some query misses keys: the first query of a block looks back furthest, and the "
            "last one sees the latest key.",
            lambda got, want: True,
        ),
    )
    agree(got, attention(seen), call="the attention", rtol=1e-5, atol=1e-5, hints=hints)

    blocks = seen.reshape(T // bq, bq, T // bk, bk).any(axis=(1, 3))
    told = [tuple(map(int, blocks_seen(i, bq, bk, WINDOW))) for i in range(T // bq)]
    computed = np.array([[a <= j <= b for j in range(T // bk)] for a, b in told])
    if computed.sum() > blocks.sum():
        i = int(np.nonzero(computed.sum(axis=1) > blocks.sum(axis=1))[0][0])
        raise AssertionError(
            f"{computed.sum()} programs compute, and {blocks.sum()} would do. Hint: block {i} of "
            f"queries sees the blocks {np.nonzero(blocks[i])[0].tolist()} of keys, and you return "
            f"{told[i]}."
        )
