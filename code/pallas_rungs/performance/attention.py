"""Four ways to compute causal attention, to be estimated side by side, and the work in each.

Ours and XLA's are this package's; the other two come with the installed jax. All take (heads, T, d)
of queries, keys and values, and return the output of attention; ours returns the logsumexp as well.
The gates have two of them in modules of their own, `causal` and `jax_flash`: a gate's record holds
the hash of whole modules, and these are all that its figures hang on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

from pallas_rungs.kernels.flash_attention_strips import flash_attention_strips
from pallas_rungs.performance import rivals
from pallas_rungs.performance.estimate import Estimate
from pallas_rungs.performance.jax_flash import causal_flash_of_jax

HEADS: Final = 16
LENGTH: Final = 4096
WIDTH: Final = 128

Attention = Callable[[jax.Array, jax.Array, jax.Array], Any]


def shaped(length: int = LENGTH, *, heads: int = HEADS) -> jax.ShapeDtypeStruct:
    """Return the shape of the queries, of the keys and of the values: bfloat16, 128 wide."""
    return jax.ShapeDtypeStruct((heads, length, WIDTH), jnp.bfloat16)


def ours(b: int = 1024, strip: int = 512) -> Attention:
    """Return `flash_attention_strips` with blocks of b, in strips of keys."""

    def flash_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        return flash_attention_strips(q, k, v, block=(b, strip))

    return flash_attention


def jax_flash(block_q: int = 128, block_k_major: int = 128, block_k: int = 128) -> Attention:
    """Return the flash attention of the installed jax; its own block sizes are all 128.

    Args:
      block_q: queries of a block.
      block_k_major: keys of a block.
      block_k: keys that are folded at a time.
    """
    block = (block_q, block_k_major, block_k)

    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return causal_flash_of_jax(q, k, v, block=block)

    return attention


def splash_attention(
    length: int = LENGTH,
    block_q: int = 128,
    block_kv: int = 128,
    block_kv_compute: int = 128,
    *,
    heads: int = HEADS,
    interpret: bool = False,
) -> Attention:
    """Return splash attention with a causal mask; it takes queries that are scaled already.

    Args:
      length: queries, and keys; the mask is made for them.
      block_q: queries of a block; its own sizes are all 128.
      block_kv: keys of a block.
      block_kv_compute: keys that are folded at a time.
      heads: heads of the queries, each with keys of its own.
      interpret: whether it is interpreted.
    """
    found: Attention = splash.make_splash_mha(
        masks.MultiHeadMask([masks.CausalMask((length, length))] * heads),
        block_sizes=splash.BlockSizes(block_q, block_kv, block_kv_compute),
        head_shards=1,
        q_seq_shards=1,
        interpret=interpret,
    )

    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        made: jax.Array = found(q, k, v)
        return made

    return attention


def xla(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Return causal attention from whole rows of scores, as written for XLA."""
    return rivals.attention(q, k, v, causal=True)


def pairs_needed(length: int) -> int:
    """Return how many pairs of a query and a key causal attention has, for one head."""
    return length * (length + 1) // 2


def pairs_in_blocks(length: int, block_q: int, block_k: int) -> int:
    """Return the pairs in blocks of which some query sees some key: what is multiplied.

    Args:
      length: queries, and keys; both block sizes divide it.
      block_q: queries of a block.
      block_k: keys of a block.
    """
    rows = range(block_q, length + 1, block_q)
    return sum(block_q * block_k * -(-last // block_k) for last in rows)


def pairs_in_strips(length: int, b: int, strip: int) -> int:
    """Return the same for blocks whose diagonal is folded in strips, each from its first query on.

    Args:
      length: queries, and keys; b divides it.
      b: queries of a block, and keys.
      strip: keys of a strip; it divides b.
    """
    blocks = length // b
    staircase = sum((b - c) * strip for c in range(0, b, strip))
    return blocks * (blocks - 1) // 2 * b * b + blocks * staircase


def kept(found: Estimate) -> dict[str, Any]:
    """Return of an estimate what a page needs, as JSON data: without loops and constants."""
    data = found.to_json()
    del data["constants"]
    for kernel in data["kernels"]:
        del kernel["loops"]
    return data
