"""Attention without its matrix of scores on a GPU, through Triton."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pltriton


def flash_attention_rows_kernel(
    q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any, *, bk: int, causal: bool, scale: float
) -> None:
    """Write one block of queries' attention, bk keys at a time; the state stays in registers."""
    bq, d = q_ref.shape
    i = pl.program_id(1)
    q = q_ref[...]

    def fold(j: Any, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        m, total, acc = state
        at = pl.ds(j * bk, bk)
        v = v_ref[at, :]
        s = scale * jnp.dot(q, k_ref[at, :].T, preferred_element_type=jnp.float32)
        if causal:
            row = i * bq + lax.broadcasted_iota(jnp.int32, s.shape, 0)
            column = j * bk + lax.broadcasted_iota(jnp.int32, s.shape, 1)
            s = jnp.where(column <= row, s, -jnp.inf)
        # Every row sees key 0, in the first block: from there on m is finite.
        higher = jnp.maximum(m, jnp.max(s, axis=1))
        alpha = jnp.exp(m - higher)
        p = jnp.exp(s - higher[:, None])
        acc = alpha[:, None] * acc + jnp.dot(
            p.astype(v.dtype), v, preferred_element_type=jnp.float32
        )
        return higher, alpha * total + jnp.sum(p, axis=1), acc

    blocks = lax.div((i + 1) * bq + bk - 1, bk) if causal else k_ref.shape[0] // bk
    empty = jnp.full((bq,), -jnp.inf), jnp.zeros((bq,)), jnp.zeros((bq, d))
    _, total, acc = lax.fori_loop(0, blocks, fold, empty)
    o_ref[...] = (acc / total[:, None]).astype(o_ref.dtype)


def flash_attention_by_triton(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    *,
    causal: bool = False,
    block: tuple[int, int] = (128, 64),
    num_warps: int = 4,
    interpret: bool = False,
) -> jax.Array:
    """Return softmax(q kᵀ / sqrt(d)) v of each head; no row of scores is ever whole.

    Args:
        q: (heads, Tq, d), float16 or bfloat16; d is a power of two, 16 or more.
        k: (heads, Tk, d), the same dtype.
        v: The shape and dtype of k.
        causal: Query i sees the keys up to i only; asks for Tq = Tk.
        block: (bq, bk), powers of two of 16 or more; bq divides Tq, bk divides Tk.
        num_warps: Warps of 32 threads that share a block of queries.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        (heads, Tq, d), summed in float32, of the dtype of q.
    """
    heads, Tq, d = q.shape
    Tk = k.shape[1]
    bq, bk = block
    whole = pl.BlockSpec((None, Tk, d), lambda h, i: (h, 0, 0))
    queries = pl.BlockSpec((None, bq, d), lambda h, i: (h, i, 0))
    kernel = partial(flash_attention_rows_kernel, bk=bk, causal=causal, scale=d**-0.5)
    return pl.pallas_call(
        kernel,
        grid=(heads, Tq // bq),
        in_specs=[queries, whole, whole],
        out_specs=queries,
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        compiler_params=pltriton.CompilerParams(num_warps=num_warps, num_stages=2),
        interpret=interpret,
    )(q, k, v)
