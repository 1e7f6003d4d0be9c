"""The flash attention that jax ships for TPUs, as a rival: it is held against ours in a gate."""

from __future__ import annotations

import jax
from jax.experimental.pallas.ops.tpu import flash_attention


def causal_flash_of_jax(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Return causal attention of each head by jax's kernel, with its own choice of blocks.

    Args:
      q: (heads, T, d).
      k: (heads, T, d).
      v: (heads, T, d).

    Returns:
      (heads, T, d).
    """
    heads = (x[None] for x in (q, k, v))
    made: jax.Array = flash_attention.flash_attention(
        *heads, causal=True, sm_scale=q.shape[-1] ** -0.5
    )
    return made[0]
