"""Attention whose scores are made and used block by block: the forward pass."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import LANES, block_size, check_attention, check_block

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def last_block_seen(i: Any, bq: int, bk: int) -> Any:
    """Return the last block of keys that a query of block i sees in causal attention."""
    return jax.lax.div((i + 1) * bq - 1, bk)


def flash_attention_forward_kernel(
    q_ref: jax.Ref,
    k_ref: jax.Ref,
    v_ref: jax.Ref,
    o_ref: jax.Ref,
    lse_ref: jax.Ref,
    m_ref: jax.Ref,
    l_ref: jax.Ref,
    acc_ref: jax.Ref,
    *,
    causal: bool,
    scale: float,
    keys: int,
) -> None:
    """Fold one block of keys and values into the state (m, l, acc) of a block of queries.

    m (bq, 1) is the largest score so far, l (bq, 1) the sum of exp(s - m), acc (bq, d) the sum of
    exp(s - m) v. The last program of a block of queries writes acc / l and m + log l.
    """
    i, j = pl.program_id(1), pl.program_id(2)
    bq, bk = q_ref.shape[0], k_ref.shape[0]

    @pl.when(j == 0)
    def _() -> None:
        m_ref[...] = jnp.full_like(m_ref, -jnp.inf)
        l_ref[...] = jnp.zeros_like(l_ref)
        acc_ref[...] = jnp.zeros_like(acc_ref)

    @pl.when(j <= last_block_seen(i, bq, bk) if causal else True)
    def _() -> None:
        q, k, v = q_ref[...], k_ref[...], v_ref[...]
        s = scale * jax.lax.dot_general(
            q, k, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        )
        column = j * bk + jax.lax.broadcasted_iota(jnp.int32, s.shape, 1)
        if causal:
            row = i * bq + jax.lax.broadcasted_iota(jnp.int32, s.shape, 0)
            s = jnp.where(column <= row, s, -jnp.inf)
        if keys % bk:  # keys and values past the end: no score, and zero for NaN in the product
            s = jnp.where(column < keys, s, -jnp.inf)
            v = jnp.where(j * bk + jax.lax.broadcasted_iota(jnp.int32, v.shape, 0) < keys, v, 0)

        # Every row sees key 0, in the first block: from here on m is finite.
        m = jnp.maximum(m_ref[...], jnp.max(s, axis=1, keepdims=True))
        alpha = jnp.exp(m_ref[...] - m)
        p = jnp.exp(s - m)
        l_ref[...] = alpha * l_ref[...] + jnp.sum(p, axis=1, keepdims=True)
        acc_ref[...] = alpha * acc_ref[...] + jnp.dot(
            p.astype(v.dtype), v, preferred_element_type=jnp.float32
        )
        m_ref[...] = m

    @pl.when(j == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = (acc_ref[...] / l_ref[...]).astype(o_ref.dtype)
        lse_ref[...] = (m_ref[...] + jnp.log(l_ref[...])).T


def flash_attention_forward(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    *,
    causal: bool = False,
    scale: float | None = None,
    block: tuple[int, int] = (512, 512),
    interpret: Any = False,
) -> tuple[jax.Array, jax.Array]:
    """Return softmax(scale q kᵀ) v of each head, and the logsumexp of each row of scores.

    The matrix of scores never exists: VMEM holds one (bq, bk) block of it. float32 operands are
    multiplied at the default precision of ``jnp.dot``, which a chip may take as less than float32.
    No rung without a chip can show that.

    Args:
        q: (heads, Tq, d), or (Tq, d) for one head; float32 or bfloat16.
        k: (heads, Tk, d) or (Tk, d), the same dtype.
        v: The shape and dtype of k.
        causal: Query i sees the keys up to i only; asks for Tq = Tk.
        scale: Factor of the scores, 1 / sqrt(d) if None.
        block: (bq, bk). A block that is longer than its axis is cut down to it; the last one may
            be partial. Both come in 128s: each is the last axis of some block.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        o, of the shape and dtype of q, and the logsumexp, (heads, Tq) or (Tq,), float32.

    Raises:
        ValueError: The shapes or dtypes do not fit, a size is zero, attention is causal and
            Tq is not Tk, or a block size is neither the whole axis nor a multiple of 128.
    """
    heads, Tq, Tk, d = check_attention(q, k, v, causal)
    check_block("block", block, ("bq", "bk"))
    bq = block_size("bq", block[0], Tq, LANES)
    bk = block_size("bk", block[1], Tk, LANES)
    factor = d**-0.5 if scale is None else scale
    kernel = partial(flash_attention_forward_kernel, causal=causal, scale=factor, keys=Tk)

    def keys_of(h: Any, i: Any, j: Any) -> tuple[Any, Any, int]:
        # A block that is not seen is not fetched: the map stays at the last one that was.
        return h, jnp.minimum(j, last_block_seen(i, bq, bk)) if causal else j, 0

    o, lse = pl.pallas_call(
        kernel,
        grid=(heads, pl.cdiv(Tq, bq), pl.cdiv(Tk, bk)),
        in_specs=[
            pl.BlockSpec((None, bq, d), lambda h, i, j: (h, i, 0)),
            pl.BlockSpec((None, bk, d), keys_of),
            pl.BlockSpec((None, bk, d), keys_of),
        ],
        out_specs=[
            pl.BlockSpec((None, bq, d), lambda h, i, j: (h, i, 0)),
            pl.BlockSpec((None, 1, bq), lambda h, i, j: (h, 0, i)),  # a row: dense in HBM
        ],
        out_shape=[
            jax.ShapeDtypeStruct((heads, Tq, d), q.dtype),
            jax.ShapeDtypeStruct((heads, 1, Tq), jnp.float32),
        ],
        scratch_shapes=[
            pltpu.VMEM((bq, 1), jnp.float32),
            pltpu.VMEM((bq, 1), jnp.float32),
            pltpu.VMEM((bq, d), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"),
        ),
        interpret=interpret,
    )(q.reshape(heads, Tq, d), k.reshape(heads, Tk, d), v.reshape(heads, Tk, d))
    return o.reshape(q.shape), lse.reshape(q.shape[:-1])


def flash_attention_forward_reference(
    q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the output and the logsumexp of attention in float64, from whole rows of scores."""
    q64, k64, v64 = (np.asarray(x, np.float64) for x in (q, k, v))
    s = (q64.shape[-1] ** -0.5 if scale is None else scale) * q64 @ np.swapaxes(k64, -1, -2)
    if causal:
        s = np.where(np.tri(*s.shape[-2:]) > 0, s, -np.inf)
    m = s.max(axis=-1, keepdims=True)
    p = np.exp(s - m)
    total = p.sum(axis=-1, keepdims=True)
    return p @ v64 / total, (m + np.log(total))[..., 0]


def forward_error_bound(q: Any, k: Any, v: Any, scale: float | None = None) -> float:
    """Return how far o and the logsumexp, computed in float32, may be from the exact ones.

    Args:
        q: (heads, Tq, d) or (Tq, d), float32 or bfloat16.
        k: (heads, Tk, d) or (Tk, d), the same dtype.
        v: As k.
        scale: Factor of the scores, 1 / sqrt(d) if None.

    Returns:
        A bound on the absolute error; a result in bfloat16 errs by half a unit of its own as well.
    """
    q64, k64, v64 = (np.abs(np.asarray(x, np.float64)) for x in (q, k, v))
    d, Tk = k64.shape[-1], k64.shape[-2]
    u = 2.0**-24
    # A score is a sum of d products: it errs by about d units of the largest sum of their sizes.
    # The exponential makes of that absolute error a relative one.
    S = float((q64 @ np.swapaxes(k64, -1, -2)).max()) * (d**-0.5 if scale is None else scale)
    relative = (d + 4) * u * S
    # Sums of Tk positive terms, and the factors by which they are rescaled.
    relative += (2 * Tk + 16) * u
    # Weights are rounded to the dtype of the values before they meet them.
    rounded = 0.0 if q.dtype == np.float32 else BFLOAT16_RTOL
    # o is a quotient of two such sums, in units of the largest value. m cancels, errors and all.
    return (2 * relative + rounded) * max(float(v64.max()), 1.0)


def normal_cases(*described: tuple[str, tuple[int, ...], Any, float]) -> tuple[Case, ...]:
    """Return cases of normally distributed q, k and v, for a forward pass.

    Args:
        *described: The name of each case, the shape of its arrays, their dtype, and what is added
            to the first column of q and of k: x makes every score x² / sqrt(d) larger.
    """
    rng = np.random.default_rng(0)
    made = []
    for name, shape, dtype, offset in described:
        q, k, v = (rng.standard_normal(shape).astype(dtype) for _ in range(3))
        k[..., 0] += offset
        q[..., 0] += offset
        made.append(Case(name, (q, k, v), rtol=2.0**-22, atol=forward_error_bound(q, k, v)))
    return tuple(made)


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks of 128 that divide and do not, one key, large scores, dtypes."""
    return normal_cases(
        ("two blocks of each", (1, 256, 64), np.float32, 0),
        ("last blocks partial", (2, 160, 64), np.float32, 0),
        ("one query, one key, no head axis", (1, 128), np.float32, 0),
        ("scores near 400", (1, 160, 64), np.float32, 56),
        ("bfloat16", (1, 256, 64), jnp.bfloat16, 0),
    )
