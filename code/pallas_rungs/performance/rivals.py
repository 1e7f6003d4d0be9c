"""What a kernel has to beat: the same task as a reader would write it for XLA.

Each takes what the kernel takes, computes in float32 where the kernel does, and rounds once to the
dtype of its first argument. None holds a Pallas kernel, so an estimate of one is of XLA's own code.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def matmul(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return x @ y, summed in float32: (M, K) by (K, N), of the dtype of x."""
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def matmul_gelu(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the GELU (the one with tanh) of x @ y: (M, K) by (K, N), of the dtype of x."""
    product = jnp.dot(x, y, preferred_element_type=jnp.float32)
    return jax.nn.gelu(product, approximate=True).astype(x.dtype)


def softmax(x: jax.Array) -> jax.Array:
    """Return the softmax of each row, (M, N), of the dtype of x."""
    return jax.nn.softmax(x.astype(jnp.float32), axis=1).astype(x.dtype)


def layer_norm(x: jax.Array, gamma: jax.Array, beta: jax.Array, *, eps: float = 1e-5) -> jax.Array:
    """Return each row of (M, N) at mean 0 and variance 1, by gamma, plus beta, both (N,)."""
    wide = x.astype(jnp.float32)
    centred = wide - jnp.mean(wide, axis=1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=1, keepdims=True)
    return (centred * jax.lax.rsqrt(variance + eps) * gamma + beta).astype(x.dtype)


def rms_norm(x: jax.Array, gamma: jax.Array, *, eps: float = 1e-6) -> jax.Array:
    """Return each row of (M, N) at root mean square 1, by gamma (N,)."""
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=1, keepdims=True) + eps)
    return (wide * scale * gamma).astype(x.dtype)


def attention(q: jax.Array, k: jax.Array, v: jax.Array, *, causal: bool = False) -> jax.Array:
    """Return softmax(q kᵀ / sqrt(d)) v of each head from whole rows of scores.

    Args:
      q: (heads, Tq, d).
      k: (heads, Tk, d).
      v: (heads, Tk, d).
      causal: query i sees the keys up to i only; asks for Tq = Tk.

    Returns:
      (heads, Tq, d), of the dtype of q.
    """
    scores = q.shape[-1] ** -0.5 * jnp.einsum(
        "hqd,hkd->hqk", q, k, preferred_element_type=jnp.float32
    )
    if causal:
        queries, keys = scores.shape[1:]
        scores = jnp.where(jnp.tri(queries, keys, dtype=bool), scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("hqk,hkd->hqd", weights, v, preferred_element_type=jnp.float32).astype(
        q.dtype
    )
