"""Causal attention whose blocks are folded strip by strip, and masked only on the diagonal."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import (
    LANES,
    block_size,
    check_attention,
    check_block,
    check_blocks_divide,
    refusal,
)
from pallas_rungs.kernels.flash_attention_forward import (
    flash_attention_forward_reference,
    normal_cases,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")

LOG2_E = math.log2(math.e)


def across(x: jax.Array, width: int) -> jax.Array:
    """Return (rows, 128), equal in all lanes, as (rows, width)."""
    return jnp.tile(x, (1, pl.cdiv(width, LANES)))[:, :width]


def sums_by_lane(p: jax.Array) -> jax.Array:
    """Return the sums of every 128th column, (rows, 128): no number leaves its lane."""
    return sum(p[:, c : c + LANES] for c in range(LANES, p.shape[1], LANES)) + p[:, :LANES]


def flash_attention_strips_kernel(
    q_ref: jax.Ref,
    k_ref: jax.Ref,
    v_ref: jax.Ref,
    o_ref: jax.Ref,
    lse_ref: jax.Ref,
    m_ref: jax.Ref,
    l_ref: jax.Ref,
    acc_ref: jax.Ref,
    *,
    scale: float,
    strip: int,
) -> None:
    """Fold one block of keys and values into the state of a block of as many queries.

    The state is that of ``flash_attention_forward_kernel``, but scores are in units of log 2; m
    (b, 128) holds the maximum in every lane, and l (b, 128) the sum of every 128th weight.
    """
    i, j = pl.program_id(1), pl.program_id(2)
    b, d = q_ref.shape

    @pl.when(j == 0)
    def _() -> None:
        m_ref[...] = jnp.full_like(m_ref, -jnp.inf)
        l_ref[...] = jnp.zeros_like(l_ref)
        acc_ref[...] = jnp.zeros_like(acc_ref)

    def fold(diagonal: bool) -> None:
        for c in range(0, b, strip):
            keys = pl.ds(c, strip)
            # On the diagonal, the queries above this strip of keys see none of it.
            rows = pl.ds(c, b - c) if diagonal else pl.ds(0, b)
            s = (scale * LOG2_E) * jax.lax.dot_general(
                q_ref[rows, :],
                k_ref[keys, :],
                (((1,), (1,)), ((), ())),
                preferred_element_type=jnp.float32,
            )
            if diagonal:
                row = jax.lax.broadcasted_iota(jnp.int32, s.shape, 0)
                column = jax.lax.broadcasted_iota(jnp.int32, s.shape, 1)
                s = jnp.where(column <= row, s, -jnp.inf)
            before = m_ref[rows, :]
            m = jnp.maximum(before, jnp.max(s, axis=1, keepdims=True))
            alpha = jnp.exp2(before - m)
            p = jnp.exp2(s - across(m, strip))
            l_ref[rows, :] = alpha * l_ref[rows, :] + sums_by_lane(p)
            acc_ref[rows, :] = across(alpha, d) * acc_ref[rows, :] + jnp.dot(
                p.astype(v_ref.dtype), v_ref[keys, :], preferred_element_type=jnp.float32
            )
            m_ref[rows, :] = m

    @pl.when(j < i)
    def _() -> None:
        fold(diagonal=False)

    @pl.when(j == i)
    def _() -> None:
        fold(diagonal=True)

    @pl.when(j == pl.num_programs(2) - 1)
    def _() -> None:
        total = jnp.sum(l_ref[...], axis=1, keepdims=True)
        o_ref[...] = (acc_ref[...] / total).astype(o_ref.dtype)
        lse_ref[...] = ((m_ref[:, :1] + jnp.log2(total)) / LOG2_E).T


def flash_attention_strips(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    *,
    scale: float | None = None,
    block: tuple[int, int] = (1024, 512),
    vmem_limit_bytes: int | None = None,
    interpret: Any = False,
) -> tuple[jax.Array, jax.Array]:
    """Return causal softmax(scale q kᵀ) v of each head, and the logsumexp of each row of scores.

    float32 operands are multiplied at the default precision of ``jnp.dot``, which a chip may take
    as less than float32. No rung without a chip can show that.

    Args:
        q: (heads, T, d), or (T, d) for one head; float32 or bfloat16; T a multiple of 128.
        k: The shape and dtype of q.
        v: The shape and dtype of q.
        scale: Factor of the scores, 1 / sqrt(d) if None.
        block: (b, strip). Blocks of b queries meet blocks of b keys, strip keys at a time. A block
            that is longer than T is cut down to it, and a strip to its block.
        vmem_limit_bytes: VMEM that the compiler may give it; None for the chip's default.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        o, of the shape and dtype of q, and the logsumexp, (heads, T) or (T,), float32.

    Raises:
        ValueError: The shapes or dtypes do not fit, a size is zero, T is not a multiple of 128, b
            does not divide it, or strip, a multiple of 128, does not divide b.
    """
    heads, T, _, d = check_attention(q, k, v, causal=True)
    if T % LANES:
        raise refusal(
            "the length of q",
            T,
            f"sums are kept for each of {LANES} lanes, so keys come in {LANES}s",
            f"pad q, k and v with {-T % LANES} rows; no query before them sees those",
        )
    check_block("block", block, ("b", "strip"))
    b = block_size("b", block[0], T, LANES)
    strip = block_size("strip", block[1], b, LANES)
    because = "the diagonal goes from corner to corner of its blocks"
    check_blocks_divide("b", b, "T", T, because=because)
    check_blocks_divide("strip", strip, "b", b, because="a block is folded in whole strips")
    factor = d**-0.5 if scale is None else scale

    def keys_of(h: Any, i: Any, j: Any) -> tuple[Any, Any, int]:
        # A program above the diagonal asks for the block that the next row begins with.
        return h, jnp.where(j <= i, j, 0), 0

    o, lse = pl.pallas_call(
        partial(flash_attention_strips_kernel, scale=factor, strip=strip),
        grid=(heads, T // b, T // b),
        in_specs=[
            pl.BlockSpec((None, b, d), lambda h, i, j: (h, i, 0)),
            pl.BlockSpec((None, b, d), keys_of),
            pl.BlockSpec((None, b, d), keys_of),
        ],
        out_specs=[
            pl.BlockSpec((None, b, d), lambda h, i, j: (h, i, 0)),
            pl.BlockSpec((None, 1, b), lambda h, i, j: (h, 0, i)),
        ],
        out_shape=[
            jax.ShapeDtypeStruct((heads, T, d), q.dtype),
            jax.ShapeDtypeStruct((heads, 1, T), jnp.float32),
        ],
        scratch_shapes=[
            pltpu.VMEM((b, LANES), jnp.float32),
            pltpu.VMEM((b, LANES), jnp.float32),
            pltpu.VMEM((b, d), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"),
            vmem_limit_bytes=vmem_limit_bytes,
        ),
        interpret=interpret,
    )(q.reshape(heads, T, d), k.reshape(heads, T, d), v.reshape(heads, T, d))
    return o.reshape(q.shape), lse.reshape(q.shape[:-1])


def flash_attention_strips_reference(
    q: Any, k: Any, v: Any, *, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the output and the logsumexp of causal attention in float64."""
    return flash_attention_forward_reference(q, k, v, causal=True, scale=scale)


def cases() -> tuple[Case, ...]:
    """Return inputs: several blocks and strips, a row shorter than a block, wide and large ones."""
    return normal_cases(
        ("two blocks of two strips", (1, 512, 64), np.float32, 0),
        ("two heads of one strip, no second block", (2, 128, 128), np.float32, 0),
        ("scores near 400, no head axis, longer than a lane", (256, 136), np.float32, 68),
        ("bfloat16", (1, 512, 64), jnp.bfloat16, 0),
    )
