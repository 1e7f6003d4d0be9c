"""This book's flash attention as the gates call it: causal, and without the logsumexp."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pallas_rungs.kernels.flash_attention_forward import flash_attention_forward_reference
from pallas_rungs.kernels.flash_attention_strips import flash_attention_strips


def causal_flash(q: jax.Array, k: jax.Array, v: jax.Array, **options: Any) -> jax.Array:
    """Return causal attention of each head by this book's kernel.

    Args:
      q: (heads, T, d), float32 or bfloat16.
      k: (heads, T, d), the same dtype.
      v: (heads, T, d), the same dtype.
      **options: passed on to `flash_attention_strips`, `block` among them.

    Returns:
      (heads, T, d), of the dtype of q.
    """
    return flash_attention_strips(q, k, v, **options)[0]


def causal_reference(q: Any, k: Any, v: Any) -> np.ndarray:
    """Return causal attention in float64, head after head: the scores fill much memory."""
    heads = zip(*(np.asarray(x, np.float64) for x in (q, k, v)), strict=True)
    found = [flash_attention_forward_reference(*head, causal=True)[0] for head in heads]
    return np.stack(found)
