"""Exercise: RMSNorm of rows in a kernel, which must work under `jax.vmap` too."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.bounds import gamma
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, run

Function = Callable[[Any, Any], Any]

EPS = 1e-6


def normalised(kernel: Callable[..., None], x: Any, w: Any) -> Any:
    """Call ``kernel`` on blocks of eight rows of ``x``, with all of ``w`` as a (1, N) block.

    Args:
        kernel: takes ``x_ref`` (8, N), ``w_ref`` (1, N) and ``o_ref`` (8, N).
        x: (M, N). Eight need not divide M: no row looks at another.
        w: (N,).
    """
    M, N = x.shape
    rows = pl.BlockSpec((8, N), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(M, 8),),
        in_specs=[rows, pl.BlockSpec((1, N), lambda i: (0, 0))],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=True,
    )(x, w.reshape(1, N))


def starter(x: Any, w: Any) -> Any:
    """Where to begin: the weights are there, the norm is missing."""

    def kernel(x_ref: Any, w_ref: Any, o_ref: Any) -> None:
        o_ref[...] = (x_ref[...] * w_ref[...]).astype(o_ref.dtype)

    return normalised(kernel, x, w)


def solution(x: Any, w: Any) -> Any:
    """Statistics in float32, a mean for each row, eps under the root."""

    def kernel(x_ref: Any, w_ref: Any, o_ref: Any) -> None:
        x = x_ref[...].astype(jnp.float32)
        mean_square = jnp.mean(x * x, axis=1, keepdims=True)
        y = x * jax.lax.rsqrt(mean_square + EPS) * w_ref[...].astype(jnp.float32)
        o_ref[...] = y.astype(o_ref.dtype)

    return normalised(kernel, x, w)


def eps_outside(x: Any, w: Any) -> Any:
    """Wrong: eps is added to the root, where it does nothing to small rows."""

    def kernel(x_ref: Any, w_ref: Any, o_ref: Any) -> None:
        x = x_ref[...].astype(jnp.float32)
        root = jnp.sqrt(jnp.mean(x * x, axis=1, keepdims=True)) + EPS
        o_ref[...] = (x / root * w_ref[...].astype(jnp.float32)).astype(o_ref.dtype)

    return normalised(kernel, x, w)


def mean_of_the_block(x: Any, w: Any) -> Any:
    """Wrong: one mean for all rows of the block."""

    def kernel(x_ref: Any, w_ref: Any, o_ref: Any) -> None:
        x = x_ref[...].astype(jnp.float32)
        y = x * jax.lax.rsqrt(jnp.mean(x * x) + EPS) * w_ref[...].astype(jnp.float32)
        o_ref[...] = y.astype(o_ref.dtype)

    return normalised(kernel, x, w)


def statistics_in_the_dtype_of_x(x: Any, w: Any) -> Any:
    """Wrong for bfloat16: every step is rounded to eight bits."""

    def kernel(x_ref: Any, w_ref: Any, o_ref: Any) -> None:
        x = x_ref[...]
        mean_square = jnp.mean(x * x, axis=1, keepdims=True)
        o_ref[...] = x * jax.lax.rsqrt(mean_square + EPS) * w_ref[...].astype(x.dtype)

    return normalised(kernel, x, w)


WRONG: tuple[tuple[Function, str], ...] = (
    (eps_outside, "Hint: eps belongs under the root"),
    (mean_of_the_block, "Hint: every row has a mean of its own"),
    (statistics_in_the_dtype_of_x, "bfloat16.*Hint: .* rounded more than once"),
)


def reference(x: Any, w: Any) -> np.ndarray:
    """Return RMSNorm along the last axis in float64."""
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    return np.asarray(x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPS) * w)


def check(function: Function) -> None:
    """Compare ``rmsnorm_pl(x, w)`` with float64: alone, under vmap, and in bfloat16.

    The tolerance is derived: N additions halved by the root, some roundings around them, and for
    bfloat16 the store. For the last input the kernel is also lowered for a v5e.

    Args:
        function: takes ``x``, (M, N), and ``w``, (N,), and returns
            ``x / sqrt(mean(x**2) + 1e-6) * w`` in the dtype of ``x``, by a Pallas kernel.

    Raises:
        AssertionError: The result differs, or the function cannot be mapped or lowered.
    """
    rng = np.random.default_rng(0)
    N = 256
    rtol = float(gamma(N / 2 + 10))
    # Rows of every size, so that rows differ from their block, and some are below eps.
    sizes = np.array([1.0, 100.0, 1e-3, 0.01, 3.0])[np.arange(20) % 5][:, None]
    x = (sizes * rng.standard_normal((3, 20, N))).astype(np.float32)
    x[1, 4] = 0.0
    w = (1 + rng.standard_normal(N) / 4).astype(np.float32)

    def hints(x: Any) -> tuple[Hint, ...]:
        root = np.sqrt(np.square(x, dtype=np.float64).mean(axis=-1, keepdims=True))
        return (
            Hint("the rows are scaled by w, and by nothing else yet.", close_to(x * w)),
            Hint("eps belongs under the root, where it outweighs a small mean square.",
                 close_to(x / (root + EPS) * w, rtol=1e-3)),
            Hint("every row has a mean of its own: give jnp.mean the axis, and keepdims=True.",
                 lambda got, want: _one_scale_for_a_block(got, x * w)),
        )  # fmt: skip

    call = "rmsnorm_pl(x, w) with x of shape (20, 256)"
    got = run(function, x[0], w, call=call)
    agree(got, reference(x[0], w), call=call, rtol=rtol, atol=0, hints=hints(x[0]), dtype=x.dtype)

    mapped = jax.vmap(function, in_axes=(0, None))
    call = "jax.vmap(rmsnorm_pl, in_axes=(0, None))(x, w) with x of shape (3, 20, 256)"
    got = run(mapped, x, w, call=call)
    agree(got, reference(x, w), call=call, rtol=rtol, atol=0, hints=hints(x), dtype=x.dtype)

    half = x.astype(jnp.bfloat16)
    call = "the same in bfloat16"
    got = run(mapped, half, w.astype(jnp.bfloat16), call=call)
    want = reference(half, w.astype(jnp.bfloat16))
    often = Hint(
        "it is rounded more than once to eight bits: convert to float32 first, and back only when "
        "you store.",
        lambda got, want: bool(np.allclose(got.astype(np.float64), want, rtol=0.05)),
    )
    agree(
        got, want, call=call, rtol=rtol + 2.0**-8 * (1 + rtol), atol=0, hints=(often,),
        dtype=half.dtype,
    )  # fmt: skip
    climbs(mapped, half, w.astype(jnp.bfloat16), reference=reference, rungs=("lower",))


def _one_scale_for_a_block(got: Any, scaled: Any) -> bool:
    """Recognise rows of one block, the first eight, that were all divided by one number."""
    with np.errstate(invalid="ignore", divide="ignore"):
        divisors = (scaled / np.asarray(got, np.float64))[..., :8, :]
    divisors = divisors.reshape(-1, 8 * scaled.shape[-1])
    return bool(np.allclose(divisors, divisors[:, :1], rtol=1e-3))
