"""Gradients of attention with respect to q, k and v, scores made anew block by block."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import (
    LANES,
    block_size,
    check_alike,
    check_attention,
    check_block,
    refusal,
)
from pallas_rungs.kernels.flash_attention_forward import (
    flash_attention_forward_reference,
    last_block_seen,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def first_block_seeing(j: Any, bq: int, bk: int) -> Any:
    """Return the first block of queries that sees a key of block j in causal attention."""
    return jax.lax.div(j * bk, bq)


def rows(ref: jax.Ref, first: Any, length: int) -> jax.Array:
    """Read a block of rows, with zeros where the array of so many rows has ended."""
    block = ref[...]
    if length % block.shape[0]:
        row = first + jax.lax.broadcasted_iota(jnp.int32, block.shape, 0)
        block = jnp.where(row < length, block, 0)
    return block


def weights_and_slopes(
    q: jax.Array, k: jax.Array, v: jax.Array, do: jax.Array, lse: jax.Array, delta: jax.Array,
    seen: jax.Array, scale: float,
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    """Return pᵀ and dsᵀ, both (bk, bq): the weights of a block and the slopes of its scores.

    Keys run down and queries run across, so that lse and delta, (1, bq), fit as they are stored.
    """
    across = (((1,), (1,)), ((), ()))  # a @ b.T
    s = scale * jax.lax.dot_general(k, q, across, preferred_element_type=jnp.float32)
    p = jnp.where(seen, jnp.exp(s - lse), 0.0)
    dp = jax.lax.dot_general(v, do, across, preferred_element_type=jnp.float32)
    return p, jnp.where(seen, p * (dp - delta), 0.0)


def seen_in_block(i: Any, j: Any, shape: tuple[int, int], Tq: int, Tk: int, causal: bool) -> Any:
    """Return which pairs of a (bk, bq) block of keys and queries exist and see each other."""
    key = j * shape[0] + jax.lax.broadcasted_iota(jnp.int32, shape, 0)
    query = i * shape[1] + jax.lax.broadcasted_iota(jnp.int32, shape, 1)
    seen = (key < Tk) & (query < Tq)
    return seen & (key <= query) if causal else seen


def dq_kernel(
    q_ref: jax.Ref, k_ref: jax.Ref, v_ref: jax.Ref, do_ref: jax.Ref, lse_ref: jax.Ref,
    delta_ref: jax.Ref, dq_ref: jax.Ref, acc_ref: jax.Ref,
    *, causal: bool, scale: float, Tq: int, Tk: int,
) -> None:  # fmt: skip
    """Add what a block of keys gives to dq of a block of queries; keys are the last grid axis."""
    i, j = pl.program_id(1), pl.program_id(2)
    bq, bk = q_ref.shape[0], k_ref.shape[0]

    @pl.when(j == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    @pl.when(j <= last_block_seen(i, bq, bk) if causal else True)
    def _() -> None:
        q, do = rows(q_ref, i * bq, Tq), rows(do_ref, i * bq, Tq)
        k, v = rows(k_ref, j * bk, Tk), rows(v_ref, j * bk, Tk)
        seen = seen_in_block(i, j, (bk, bq), Tq, Tk, causal)
        _, ds = weights_and_slopes(q, k, v, do, lse_ref[...], delta_ref[...], seen, scale)
        down = (((0,), (0,)), ((), ()))  # a.T @ b
        acc_ref[...] += jax.lax.dot_general(
            ds.astype(k.dtype), k, down, preferred_element_type=jnp.float32
        )

    @pl.when(j == pl.num_programs(2) - 1)
    def _() -> None:
        dq_ref[...] = (scale * acc_ref[...]).astype(dq_ref.dtype)


def dkv_kernel(
    q_ref: jax.Ref, k_ref: jax.Ref, v_ref: jax.Ref, do_ref: jax.Ref, lse_ref: jax.Ref,
    delta_ref: jax.Ref, dk_ref: jax.Ref, dv_ref: jax.Ref, dk_acc_ref: jax.Ref, dv_acc_ref: jax.Ref,
    *, causal: bool, scale: float, Tq: int, Tk: int,
) -> None:  # fmt: skip
    """Add what a block of queries gives to dk and dv; queries are the last grid axis."""
    j, i = pl.program_id(1), pl.program_id(2)
    bq, bk = q_ref.shape[0], k_ref.shape[0]

    @pl.when(i == 0)
    def _() -> None:
        dk_acc_ref[...] = jnp.zeros_like(dk_acc_ref)
        dv_acc_ref[...] = jnp.zeros_like(dv_acc_ref)

    @pl.when(i >= first_block_seeing(j, bq, bk) if causal else True)
    def _() -> None:
        q, do = rows(q_ref, i * bq, Tq), rows(do_ref, i * bq, Tq)
        k, v = rows(k_ref, j * bk, Tk), rows(v_ref, j * bk, Tk)
        seen = seen_in_block(i, j, (bk, bq), Tq, Tk, causal)
        p, ds = weights_and_slopes(q, k, v, do, lse_ref[...], delta_ref[...], seen, scale)
        dv_acc_ref[...] += jnp.dot(p.astype(do.dtype), do, preferred_element_type=jnp.float32)
        dk_acc_ref[...] += jnp.dot(ds.astype(q.dtype), q, preferred_element_type=jnp.float32)

    @pl.when(i == pl.num_programs(2) - 1)
    def _() -> None:
        dk_ref[...] = (scale * dk_acc_ref[...]).astype(dk_ref.dtype)
        dv_ref[...] = dv_acc_ref[...].astype(dv_ref.dtype)


def flash_attention_backward(
    q: jax.Array, k: jax.Array, v: jax.Array, o: jax.Array, lse: jax.Array, do: jax.Array,
    *, causal: bool = False, scale: float | None = None, block: tuple[int, int] = (512, 512),
    interpret: Any = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:  # fmt: skip
    """Return the gradients of sum(do * o) with respect to q, k and v, in two launches.

    Args:
        q: (heads, Tq, d), or (Tq, d) for one head; float32 or bfloat16.
        k: (heads, Tk, d) or (Tk, d), the same dtype.
        v: The shape and dtype of k.
        o: The output of the forward pass, of the shape and dtype of q.
        lse: Its logsumexp, (heads, Tq) or (Tq,), float32.
        do: The gradient with respect to o, of its shape and dtype.
        causal: As in the forward pass.
        scale: As in the forward pass.
        block: (bq, bk), both in 128s or the whole axis; the last of either may be partial.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        dq, dk and dv, of the shapes and dtype of q, k and v.

    Raises:
        ValueError: As the forward pass; or o, lse or do do not fit q.
    """
    heads, Tq, Tk, d = check_attention(q, k, v, causal)
    check_alike("q", q, "o", o)
    check_alike("q", q, "do", do)
    if lse.shape != q.shape[:-1] or lse.dtype != jnp.float32:
        raise refusal(
            "lse",
            f"{lse.dtype.name}{list(lse.shape)}",
            f"it must be float32{list(q.shape[:-1])}",
            "pass the logsumexp that the forward pass returned",
        )
    check_block("block", block, ("bq", "bk"))
    bq = block_size("bq", block[0], Tq, LANES)
    bk = block_size("bk", block[1], Tk, LANES)
    options: dict[str, Any] = {
        "causal": causal, "scale": d**-0.5 if scale is None else scale, "Tq": Tq, "Tk": Tk,
    }  # fmt: skip

    delta = jnp.sum(do.astype(jnp.float32) * o.astype(jnp.float32), axis=-1)
    q3, k3, v3, do3 = (x.reshape(heads, -1, d) for x in (q, k, v, do))
    args = (q3, k3, v3, do3, lse.reshape(heads, 1, Tq), delta.reshape(heads, 1, Tq))
    semantics = pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary"))

    def specs(query: Any, key: Any) -> list[pl.BlockSpec]:
        """Blocks of q, k, v, do, lse and delta; query and key map a program to block numbers."""
        of_queries = pl.BlockSpec((None, bq, d), lambda h, a, b: (h, query(a, b), 0))
        of_keys = pl.BlockSpec((None, bk, d), lambda h, a, b: (h, key(a, b), 0))
        per_query = pl.BlockSpec((None, 1, bq), lambda h, a, b: (h, 0, query(a, b)))
        return [of_queries, of_keys, of_keys, of_queries, per_query, per_query]

    dq = pl.pallas_call(
        partial(dq_kernel, **options),
        grid=(heads, pl.cdiv(Tq, bq), pl.cdiv(Tk, bk)),
        in_specs=specs(
            lambda i, j: i,
            lambda i, j: jnp.minimum(j, last_block_seen(i, bq, bk)) if causal else j,
        ),
        out_specs=pl.BlockSpec((None, bq, d), lambda h, i, j: (h, i, 0)),
        out_shape=jax.ShapeDtypeStruct(q3.shape, q.dtype),
        scratch_shapes=[pltpu.VMEM((bq, d), jnp.float32)],
        compiler_params=semantics,
        interpret=interpret,
    )(*args)
    dk, dv = pl.pallas_call(
        partial(dkv_kernel, **options),
        grid=(heads, pl.cdiv(Tk, bk), pl.cdiv(Tq, bq)),
        in_specs=specs(
            lambda j, i: jnp.maximum(i, first_block_seeing(j, bq, bk)) if causal else i,
            lambda j, i: j,
        ),
        out_specs=[pl.BlockSpec((None, bk, d), lambda h, j, i: (h, j, 0))] * 2,
        out_shape=[jax.ShapeDtypeStruct(k3.shape, k.dtype)] * 2,
        scratch_shapes=[pltpu.VMEM((bk, d), jnp.float32)] * 2,
        compiler_params=semantics,
        interpret=interpret,
    )(*args)
    return dq.reshape(q.shape), dk.reshape(k.shape), dv.reshape(v.shape)


def flash_attention_backward_reference(
    q: Any, k: Any, v: Any, o: Any, lse: Any, do: Any,
    *, causal: bool = False, scale: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return the gradients in float64 by the chain rule on whole rows; o and lse are not used."""
    del o, lse
    q64, k64, v64, do64 = (np.asarray(x, np.float64) for x in (q, k, v, do))
    factor = q64.shape[-1] ** -0.5 if scale is None else scale
    s = factor * q64 @ np.swapaxes(k64, -1, -2)
    if causal:
        s = np.where(np.tri(*s.shape[-2:]) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    dp = do64 @ np.swapaxes(v64, -1, -2)
    ds = p * (dp - np.sum(p * dp, axis=-1, keepdims=True))  # the Jacobian of softmax, applied
    return (
        factor * ds @ k64,
        factor * np.swapaxes(ds, -1, -2) @ q64,
        np.swapaxes(p, -1, -2) @ do64,
    )


def backward_error_bound(q: Any, k: Any, v: Any, do: Any) -> float:
    """Return how far gradients computed in float32 may be from the exact ones.

    Args:
        q: (heads, Tq, d) or (Tq, d), float32 or bfloat16.
        k: (heads, Tk, d) or (Tk, d), the same dtype.
        v: As k.
        do: As q.

    Returns:
        A bound on the absolute error, for inputs in which no key has much more weight, summed over
        the queries, than a query has over its keys, which is 1.
    """
    q64, k64, v64, do64 = (np.abs(np.asarray(x, np.float64)) for x in (q, k, v, do))
    d, T = k64.shape[-1], max(k64.shape[-2], q64.shape[-2])
    u = 2.0**-24
    # Weights err as in the forward pass; dp and delta, sums of d products, by d units of theirs.
    S = float((q64 @ np.swapaxes(k64, -1, -2)).max()) * d**-0.5
    relative = ((d + 4) * (S + 1) + 2 * T + 16) * u
    if q.dtype != np.float32:  # p, ds and o are rounded to bfloat16 as well
        relative += 2 * BFLOAT16_RTOL
    # ds is p times the difference of dp and delta, neither of which is larger than D.
    D = float((do64 @ np.swapaxes(v64, -1, -2)).max())
    # A gradient is a sum of such slopes, or of weights, times rows of q, k or do.
    return 2 * D * relative * max(float(x.max()) for x in (q64, k64, do64))


def cases() -> tuple[Case, ...]:
    """Return inputs: blocks of 128 that divide and do not, one key without heads, bfloat16."""
    rng = np.random.default_rng(0)

    def case(name: str, *shape: int, dtype: Any = np.float32) -> Case:
        q, k, v, do = (rng.standard_normal(shape).astype(dtype) for _ in range(4))
        o, lse = flash_attention_forward_reference(q, k, v)
        args = (q, k, v, o.astype(dtype), lse.astype(np.float32), do)
        return Case(name, args, rtol=BFLOAT16_RTOL, atol=backward_error_bound(q, k, v, do))

    return (
        case("two blocks of each", 1, 256, 64),
        case("last blocks partial", 2, 160, 64),
        case("one query, one key, no head axis", 1, 128),
        case("bfloat16", 1, 256, 64, dtype=jnp.bfloat16),
    )
