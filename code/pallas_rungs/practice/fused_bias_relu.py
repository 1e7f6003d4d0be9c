"""Exercise: add a bias and apply ReLU on a product's way out."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, run

Kernel = Callable[[Any, Any, Any, Any, Any], None]

M = 8
K = 512
N = 256
BM = 8
BK = 128
BN = 128


def fused_bias_relu(kernel: Kernel, x: jax.Array, y: jax.Array, bias: jax.Array) -> jax.Array:
    """Call ``kernel`` on a grid of (1, 2, 4) programs, the four blocks of K innermost.

    Args:
        kernel: takes ``x_ref`` (8, 128), ``y_ref`` (128, 128), ``bias_ref`` (1, 128), ``o_ref``
            (8, 128) and the scratch ``sum_ref``, f32[8, 128].
        x: (8, 512), float32.
        y: (512, 256), float32.
        bias: (256,), float32.

    Returns:
        (8, 256), float32: whatever the kernel has put there.
    """
    out: jax.Array = pl.pallas_call(
        kernel,
        grid=(M // BM, N // BN, K // BK),
        in_specs=[
            pl.BlockSpec((BM, BK), lambda i, j, k: (i, k)),
            pl.BlockSpec((BK, BN), lambda i, j, k: (k, j)),
            pl.BlockSpec((1, BN), lambda i, j, k: (0, j)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
        scratch_shapes=[pltpu.VMEM((BM, BN), jnp.float32)],
    )(x, y, bias.reshape(1, N))
    return out


def starter(x_ref: Any, y_ref: Any, bias_ref: Any, o_ref: Any, sum_ref: Any) -> None:
    """Where to begin: the sum in scratch memory, and nothing comes out."""

    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


def solution(x_ref: Any, y_ref: Any, bias_ref: Any, o_ref: Any, sum_ref: Any) -> None:
    """Bias and ReLU once, on the finished sum."""

    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = jnp.maximum(sum_ref[...] + bias_ref[...], 0.0)


def relu_of_every_part(x_ref: Any, y_ref: Any, bias_ref: Any, o_ref: Any, sum_ref: Any) -> None:
    """Wrong: what is negative in one block of K is gone before the next can outweigh it."""
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        sum_ref[...] = jnp.broadcast_to(bias_ref[...], sum_ref.shape)

    part = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
    sum_ref[...] = jnp.maximum(sum_ref[...] + part, 0.0)
    o_ref[...] = sum_ref[...]


def bias_on_every_step(x_ref: Any, y_ref: Any, bias_ref: Any, o_ref: Any, sum_ref: Any) -> None:
    """Wrong: the bias is added once for each block of K."""
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    part = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
    sum_ref[...] += part + bias_ref[...]

    @pl.when(k == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = jnp.maximum(sum_ref[...], 0.0)


def written_first(x_ref: Any, y_ref: Any, bias_ref: Any, o_ref: Any, sum_ref: Any) -> None:
    """Wrong: the output is written on the first step, when a quarter of the sum is there."""
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(k == 0)
    def _() -> None:
        o_ref[...] = jnp.maximum(sum_ref[...] + bias_ref[...], 0.0)


WRONG: tuple[tuple[Kernel, str], ...] = (
    (relu_of_every_part, "ReLU was applied to unfinished sums"),
    (bias_on_every_step, "the bias was added 4 times"),
    (written_first, "only the first block of K"),
)


def check(kernel: Kernel) -> Report:
    """Run ``kernel`` and climb with it as far as lowering.

    Args:
        kernel: takes ``x_ref``, ``y_ref``, ``bias_ref``, ``o_ref`` and ``sum_ref``, see
            `fused_bias_relu`, and writes max(x @ y + bias, 0).

    Returns:
        The report, when every rung passed.

    Raises:
        AssertionError: numbers differ or a rung did not pass; says where, and what to look at.
    """
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (M, K)).astype(np.float32)
    y = rng.integers(-4, 5, (K, N)).astype(np.float32)
    bias = rng.integers(-50, 51, N).astype(np.float32)

    def reference(x: Any, y: Any, bias: Any) -> Any:
        return np.maximum(x @ y + bias, 0)

    parts = [x[:, k : k + BK] @ y[k : k + BK] for k in range(0, K, BK)]
    unfinished = np.broadcast_to(bias, (M, N))
    for part in parts:
        unfinished = np.maximum(unfinished + part, 0)
    hints = (
        Hint(
            "ReLU was applied to unfinished sums. It is not linear: it belongs under pl.when, on "
            "the last step of k",
            close_to(unfinished),
        ),
        Hint(
            f"the bias was added {len(parts)} times, once for each block of K: once is enough",
            close_to(np.maximum(sum(parts) + len(parts) * bias, 0)),
        ),
        Hint(
            "that is the result of only the first block of K: write the output on the last step",
            close_to(np.maximum(parts[0] + bias, 0)),
        ),
    )
    call = "fused_bias_relu(kernel, x, y, bias)"

    def fused(x: jax.Array, y: jax.Array, bias: jax.Array) -> jax.Array:
        return fused_bias_relu(kernel, x, y, bias)

    got = run(fused, x, y, bias, call=call)
    # Small integers: every sum is exact in float32, in whichever order it is taken.
    agree(got, reference(x, y, bias), call=call, rtol=0, atol=0, hints=hints, dtype=np.float32)
    return climbs(
        fused,
        x,
        y,
        bias,
        reference=reference,
        rungs=("trace", "interpret", "simulate", "lower"),
        rtol=0.0,
        atol=0.0,
        name=getattr(kernel, "__name__", "kernel"),
    )
