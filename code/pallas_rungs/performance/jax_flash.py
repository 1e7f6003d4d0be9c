"""The flash attention that jax ships for TPUs, as a rival: it is held against ours in a gate."""

from __future__ import annotations

import jax
from jax.experimental.pallas.ops.tpu import flash_attention


def causal_flash_of_jax(
    q: jax.Array, k: jax.Array, v: jax.Array, *, block: tuple[int, int, int] = (1024, 1024, 1024)
) -> jax.Array:
    """Return causal attention of each head by jax's kernel.

    Args:
      q: (heads, T, d).
      k: (heads, T, d).
      v: (heads, T, d).
      block: queries of a block, keys of a block, keys that are folded at a time. jax's own choice
        is 128 of each, whose estimates are far longer. These are the best found for v5e; for v6e
        (2048, 2048, 1024) is a hundredth shorter.

    Returns:
      (heads, T, d).
    """
    heads = (x[None] for x in (q, k, v))
    made: jax.Array = flash_attention.flash_attention(
        *heads,
        causal=True,
        sm_scale=q.shape[-1] ** -0.5,
        block_sizes=flash_attention.BlockSizes(*block, block_b=1),
    )
    return made[0]
