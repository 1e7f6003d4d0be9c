"""Exercise: merge two states of an online logsumexp."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.practice.judging import Hint, agree, close_to, has_nan, run

State = tuple[Any, Any]
Merge = Callable[[State, State], State]

ROWS, BLOCKS, WIDTH = 24, 4, 128
KINDS = ("rows", "rows near 10000", "rows of -inf")


def logsumexp_by(merge: Merge, x: jax.Array) -> jax.Array:
    """Fold the states of four blocks of columns into one with ``merge``.

    Args:
        merge: takes two states (m, s), each of two arrays f32[24, 1], and returns one.
        x: (24, 512), float32.

    Returns:
        m + log(s) of each row, (24, 1), float32.
    """

    def kernel(x_ref: Any, o_ref: Any, m_ref: Any, s_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            m_ref[...] = jnp.full_like(m_ref, -jnp.inf)
            s_ref[...] = jnp.zeros_like(s_ref)

        m = jnp.max(x_ref[...], axis=1, keepdims=True)
        s = jnp.sum(jnp.exp(x_ref[...] - jnp.where(m == -jnp.inf, 0.0, m)), axis=1, keepdims=True)
        m_ref[...], s_ref[...] = merge((m_ref[...], s_ref[...]), (m, s))
        o_ref[...] = m_ref[...] + jnp.log(s_ref[...])

    out: jax.Array = pl.pallas_call(
        kernel,
        grid=(BLOCKS,),
        in_specs=[pl.BlockSpec((ROWS, WIDTH), lambda j: (0, j))],
        out_specs=pl.BlockSpec((ROWS, 1), lambda j: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((ROWS, 1), jnp.float32),
        scratch_shapes=[pltpu.VMEM((ROWS, 1), jnp.float32)] * 2,
    )(x)
    return out


def starter(a: State, b: State) -> State:
    """Keep the larger maximum; the sum is still that of the first state."""
    (m_a, s_a), (m_b, _) = a, b
    return jnp.maximum(m_a, m_b), s_a


def solution(a: State, b: State) -> State:
    """Bring both sums to the larger maximum, then add them; where there is none, both are 0."""
    (m_a, s_a), (m_b, s_b) = a, b
    m = jnp.maximum(m_a, m_b)
    shift = jnp.where(m == -jnp.inf, 0.0, m)
    return m, s_a * jnp.exp(m_a - shift) + s_b * jnp.exp(m_b - shift)


def adds_the_sums(a: State, b: State) -> State:
    """Wrong: the two sums are relative to different maxima."""
    (m_a, s_a), (m_b, s_b) = a, b
    return jnp.maximum(m_a, m_b), s_a + s_b


def rescales_one(a: State, b: State) -> State:
    """Wrong: only the first sum is brought to the new maximum."""
    (m_a, s_a), (m_b, s_b) = a, b
    m = jnp.maximum(m_a, m_b)
    shift = jnp.where(m == -jnp.inf, 0.0, m)
    return m, s_a * jnp.exp(m_a - shift) + s_b


def through_the_plain_sum(a: State, b: State) -> State:
    """Wrong: exp(m) of a large m is infinite."""
    (m_a, s_a), (m_b, s_b) = a, b
    m = jnp.maximum(m_a, m_b)
    return m, (s_a * jnp.exp(m_a) + s_b * jnp.exp(m_b)) * jnp.exp(-m)


def without_a_guard(a: State, b: State) -> State:
    """Wrong where both maxima are -inf: their difference is NaN."""
    (m_a, s_a), (m_b, s_b) = a, b
    m = jnp.maximum(m_a, m_b)
    return m, s_a * jnp.exp(m_a - m) + s_b * jnp.exp(m_b - m)


WRONG: tuple[tuple[Merge, str], ...] = (
    (adds_the_sums, "relative to different maxima"),
    (rescales_one, "Only one of the two sums"),
    (through_the_plain_sum, "near 10000.*exponent may be above 0"),
    (without_a_guard, "rows of -inf.*-inf - -inf"),
)


def check(merge: Merge) -> None:
    """Compare logsumexp by ``merge`` with float64: plain rows, large offsets, rows of -inf.

    Args:
        merge: takes two states (m, s) and returns one; see `logsumexp_by`.

    Raises:
        AssertionError: a result is wrong; says for which rows, and what to look at.
    """
    x = (5 * np.random.default_rng(0).standard_normal((ROWS, BLOCKS * WIDTH))).astype(np.float32)
    x[8:16] += 10000
    x[16] = -np.inf
    x[17:, :WIDTH] = -np.inf
    blocks = x.astype(np.float64).reshape(ROWS, BLOCKS, WIDTH)
    m = blocks.max(axis=2).T
    s = np.exp(blocks - np.where(np.isinf(m.T), 0, m.T)[..., None]).sum(axis=2).T
    want = _merged(m, s, rescale=(True, True))
    added = _merged(m, s, rescale=(False, False))
    one = _merged(m, s, rescale=(True, False))
    got = run(lambda x: logsumexp_by(merge, x), x, call="logsumexp_by(merge, x)")
    for first, kind in zip(range(0, ROWS, 8), KINDS, strict=True):
        eight = slice(first, first + 8)
        hints = _hints(added[eight], one[eight], kind)
        call = f"logsumexp of {kind}"
        agree(got[eight], want[eight], call=call, rtol=1e-6, atol=1e-5, hints=hints)


def _merged(m: Any, s: Any, rescale: tuple[bool, bool]) -> Any:
    """Return m + log(s) of all blocks, (ROWS, 1); either sum may be left as it is."""
    high, total = np.full(ROWS, -np.inf), np.zeros(ROWS)
    for m_b, s_b in zip(m, s, strict=True):
        above = np.maximum(high, m_b)
        shift = np.where(np.isinf(above), 0, above)
        total = total * np.exp(high - shift) ** rescale[0] + s_b * np.exp(m_b - shift) ** rescale[1]
        high = above
    with np.errstate(divide="ignore"):
        return (high + np.log(total))[:, None]


def _hints(added: Any, one: Any, kind: str) -> tuple[Hint, ...]:
    return (
        Hint(
            "The two sums are relative to different maxima: bring each to the new maximum before "
            "you add them.",
            close_to(added),
        ),
        Hint("Only one of the two sums was brought to the new maximum; both may be below it.",
             close_to(one)),
        Hint(
            "NaN: where neither state has seen anything, both maxima are -inf, and -inf - -inf "
            "is NaN. Subtract something finite there.",
            lambda got, want: kind == "rows of -inf" and has_nan(got, want),
        ),
        Hint(
            "Something overflowed: no exponent may be above 0. Take the exponential of a "
            "difference from the new maximum.",
            lambda got, want: not np.isfinite(got).all() or has_nan(got, want),
        ),
    )  # fmt: skip
