"""Exercise: int8 weights with a scale for each block of K, which cannot wait until the end."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

Kernel = Callable[[Any, Any, Any, Any, Any], None]

BLOCK = 128

RUNGS = ("simulate", "lower", "compile")  # the first two have been climbed by then


def matmul_int8_by_block(kernel: Kernel, x: jax.Array, q: jax.Array, scale: jax.Array) -> Any:
    """Call ``kernel`` on a grid of blocks of K, each with the scales that belong to it.

    Args:
        kernel: takes ``x_ref`` (8, 128), ``q_ref`` (128, 128), ``scale_ref`` (1, 128), ``o_ref``
            (8, 128) and the scratch ``acc_ref`` (8, 128).
        x: (8, K), bfloat16.
        q: (K, 128), int8.
        scale: (K / 128, 1, 128), float32: a scale for each block of K and each column.

    Returns:
        (8, 128), float32: whatever the kernel has put there.
    """
    return pl.pallas_call(
        kernel,
        grid=(q.shape[0] // BLOCK,),
        in_specs=[
            pl.BlockSpec((8, BLOCK), lambda k: (0, k)),
            pl.BlockSpec((BLOCK, 128), lambda k: (k, 0)),
            pl.BlockSpec((None, 1, 128), lambda k: (k, 0, 0)),
        ],
        out_specs=pl.BlockSpec((8, 128), lambda k: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x, q, scale)


def starter(x_ref: Any, q_ref: Any, scale_ref: Any, o_ref: Any, acc_ref: Any) -> None:
    """The kernel of the chapter: one scale a column, applied at the end."""
    k = pl.program_id(0)

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    w = q_ref[...].astype(x_ref.dtype)
    acc_ref[...] += jnp.dot(x_ref[...], w, preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(0) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...] * scale_ref[...]


def solution(x_ref: Any, q_ref: Any, scale_ref: Any, o_ref: Any, acc_ref: Any) -> None:
    """Scale each partial product, in float32, before it is added."""
    k = pl.program_id(0)

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    w = q_ref[...].astype(x_ref.dtype)
    part = jnp.dot(x_ref[...], w, preferred_element_type=jnp.float32)
    acc_ref[...] += part * scale_ref[...]

    @pl.when(k == pl.num_programs(0) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...]


def scaled_again_and_again(
    x_ref: Any, q_ref: Any, scale_ref: Any, o_ref: Any, acc_ref: Any
) -> None:
    """Wrong: the accumulator is scaled, and with it what has been scaled before."""
    k = pl.program_id(0)

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    w = q_ref[...].astype(x_ref.dtype)
    part = jnp.dot(x_ref[...], w, preferred_element_type=jnp.float32)
    acc_ref[...] = (acc_ref[...] + part) * scale_ref[...]

    @pl.when(k == pl.num_programs(0) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...]


def weights_scaled_in_bfloat16(
    x_ref: Any, q_ref: Any, scale_ref: Any, o_ref: Any, acc_ref: Any
) -> None:
    """Wrong: the scaled weights are rounded to bfloat16 before they are multiplied."""
    k = pl.program_id(0)

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    w = (q_ref[...].astype(jnp.float32) * scale_ref[...]).astype(x_ref.dtype)
    acc_ref[...] += jnp.dot(x_ref[...], w, preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(0) - 1)
    def _() -> None:
        o_ref[...] = acc_ref[...]


def not_cleared(x_ref: Any, q_ref: Any, scale_ref: Any, o_ref: Any, acc_ref: Any) -> None:
    """Wrong: the accumulator starts out with whatever was in memory."""
    w = q_ref[...].astype(x_ref.dtype)
    part = jnp.dot(x_ref[...], w, preferred_element_type=jnp.float32)
    acc_ref[...] += part * scale_ref[...]
    o_ref[...] = acc_ref[...]


WRONG: tuple[tuple[Kernel, str], ...] = (
    (starter, "scale of the last block of K"),
    (scaled_again_and_again, "scaled once more"),
    (weights_scaled_in_bfloat16, "rounded to bfloat16"),
    (not_cleared, "starts out with"),
)


def reference(x: Any, q: Any, scale: Any) -> np.ndarray:
    """Return the product with the dequantised weights in float64."""
    w = np.asarray(q, np.float64) * np.repeat(np.asarray(scale, np.float64)[:, 0], BLOCK, axis=0)
    return np.asarray(np.asarray(x, np.float64) @ w)


def check(kernel: Kernel) -> Report:
    """Run ``kernel`` on two blocks of K with different scales, then climb.

    Args:
        kernel: takes ``x_ref``, bf16[8, 128], ``q_ref``, s8[128, 128], ``scale_ref``, f32[1, 128],
            ``o_ref``, f32[8, 128], and ``acc_ref``, f32[8, 128] in VMEM.

    Returns:
        The report of the simulator, lowering and the compiler, when each of them passed.

    Raises:
        AssertionError: what was found, where, and a hint if the mistake is a known one.
    """
    rng = np.random.default_rng(0)
    K = 2 * BLOCK
    x = rng.standard_normal((8, K)).astype(jnp.bfloat16)
    q = rng.integers(-127, 128, (K, 128), dtype=np.int8)
    scale = (2.0 ** rng.uniform(-9, -5, (2, 1, 128))).astype(np.float32)
    args = (x, q, scale)
    x64, parts = x.astype(np.float64), []
    for k in range(2):
        rows = slice(k * BLOCK, (k + 1) * BLOCK)
        parts.append(x64[:, rows] @ q[rows].astype(np.float64))
    last = sum(parts) * scale[1]
    again = np.zeros_like(last)
    for part, factor in zip(parts, scale, strict=True):
        again = (again + part) * factor
    # K products, each rounded once as it is added, and one product with a scale a block.
    terms = reference(np.abs(x64), np.abs(q.astype(np.int32)), scale)
    bound = float((K + 1) * 2.0**-24 * terms.max())

    def call(x: Any, q: Any, scale: Any) -> Any:
        return matmul_int8_by_block(kernel, x, q, scale)

    said = "matmul_int8_by_block(kernel, x, q, scale)"
    hints = (
        Hint("The accumulator starts out with whatever is in memory.", has_nan),
        Hint(
            "Every partial product got the scale of the last block of K: by then the other blocks' "
            "scales are gone.",
            close_to(last, rtol=1e-3, atol=1e-3),
        ),
        Hint(
            "What had been scaled was scaled once more with the next block's scale.",
            close_to(again, rtol=1e-3, atol=1e-3),
        ),
        Hint(
            "Nearly right: the weights, or the partial products, were rounded to bfloat16 on the "
            "way. Scale in float32, and widen the integers without scaling them.",
            close_to(reference(*args), rtol=2e-2, atol=2e-2 * float(terms.max())),
        ),
    )
    got = run(call, *args, call=said)
    agree(got, reference(*args), call=said, rtol=0, atol=bound, hints=hints)
    name = getattr(kernel, "__name__", "kernel")
    return climbs(call, *args, reference=reference, rungs=RUNGS, rtol=0, atol=bound, name=name)
