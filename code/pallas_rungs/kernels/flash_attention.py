"""Attention that can be differentiated: the forward and the backward kernels, tied together."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.flash_attention_backward import (
    backward_error_bound,
    flash_attention_backward,
    flash_attention_backward_reference,
)
from pallas_rungs.kernels.flash_attention_forward import (
    flash_attention_forward,
    flash_attention_forward_reference,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")

Options = tuple[bool, float | None, tuple[int, int], Any]
Saved = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def _attend(q: jax.Array, k: jax.Array, v: jax.Array, options: Options) -> jax.Array:
    return _forward(q, k, v, options)[0]


def _forward(q: jax.Array, k: jax.Array, v: jax.Array, options: Options) -> tuple[jax.Array, Saved]:
    """Return o, and what the backward pass needs; of that only the logsumexp is new."""
    causal, scale, block, interpret = options
    o, lse = flash_attention_forward(
        q, k, v, causal=causal, scale=scale, block=block, interpret=interpret
    )
    return o, (q, k, v, o, lse)


def _backward(
    options: Options, saved: Saved, do: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    causal, scale, block, interpret = options
    return flash_attention_backward(
        *saved, do, causal=causal, scale=scale, block=block, interpret=interpret
    )


_attend.defvjp(_forward, _backward)


def flash_attention(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    *,
    causal: bool = False,
    scale: float | None = None,
    block: tuple[int, int] = (512, 512),
    interpret: Any = False,
) -> jax.Array:
    """Return softmax(scale q kᵀ) v of each head; reverse-mode derivatives are two more launches.

    Args:
        q: (heads, Tq, d), or (Tq, d) for one head; float32 or bfloat16.
        k: (heads, Tk, d) or (Tk, d), the same dtype.
        v: The shape and dtype of k.
        causal: Query i sees the keys up to i only; asks for Tq = Tk.
        scale: Factor of the scores, a Python number; 1 / sqrt(d) if None.
        block: (bq, bk), both in 128s or the whole axis, for all three launches.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        o, of the shape and dtype of q.

    Raises:
        ValueError: As ``flash_attention_forward``.
    """
    return _attend(q, k, v, (causal, scale, block, interpret))


def output_and_gradients(
    q: jax.Array, k: jax.Array, v: jax.Array, do: jax.Array, **options: Any
) -> tuple[jax.Array, ...]:
    """Return o of `flash_attention` and the gradients of sum(do * o) for q, k and v."""
    o, pull_back = jax.vjp(lambda *args: flash_attention(*args, **options), q, k, v)
    return (o, *pull_back(do))


def flash_attention_reference(
    q: Any, k: Any, v: Any, do: Any, **options: Any
) -> tuple[np.ndarray, ...]:
    """Return o and the gradients in float64."""
    o, lse = flash_attention_forward_reference(q, k, v, **options)
    return (o, *flash_attention_backward_reference(q, k, v, o, lse, do, **options))


def cases() -> tuple[Case, ...]:
    """Return inputs in which the three launches meet; each of them has cases of its own."""
    rng = np.random.default_rng(0)

    def case(name: str, *shape: int, dtype: Any = np.float32) -> Case:
        q, k, v, do = (rng.standard_normal(shape).astype(dtype) for _ in range(4))
        bound = backward_error_bound(q, k, v, do)
        return Case(name, (q, k, v, do), rtol=BFLOAT16_RTOL, atol=bound)

    return (
        case("last blocks partial", 2, 160, 64),
        case("two blocks of each, no head axis, bfloat16", 256, 64, dtype=jnp.bfloat16),
    )
