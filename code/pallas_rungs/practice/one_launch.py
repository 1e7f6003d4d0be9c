"""Exercise: take a softmax's neighbours into its kernel, so that x is read and written once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.ladder.program import trace
from pallas_rungs.ladder.swap import equations
from pallas_rungs.practice.judging import Hint, agree, has_nan, run

Call = Callable[[Any, Any], Any]

M = 48
N = 256
BLOCK_ROWS = 8


def rows() -> pl.BlockSpec:
    """Return the spec of eight whole rows."""
    return pl.BlockSpec((BLOCK_ROWS, N), lambda i: (i, 0))


def by_rows(kernel: Callable[..., None], *args: Any) -> Any:
    """Call a kernel on blocks of eight rows of x and, where it is given, all of the (1, N) bias."""
    specs = [rows(), pl.BlockSpec((1, N), lambda i: (0, 0))]
    return pl.pallas_call(
        kernel,
        grid=(M // BLOCK_ROWS,),
        in_specs=specs[: len(args)],
        out_specs=rows(),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
    )(*args)


def softmax_rows_kernel(x_ref: Any, o_ref: Any) -> None:
    """Write the softmax of eight rows."""
    x = x_ref[...]
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)


def starter(x: jax.Array, bias: jax.Array) -> Any:
    """Right, and three launches: XLA scales before the kernel and adds the bias after it."""
    return by_rows(softmax_rows_kernel, x * 0.5) + bias


def solution(x: jax.Array, bias: jax.Array) -> Any:
    """Scale, softmax and bias in one kernel."""

    def kernel(x_ref: Any, bias_ref: Any, o_ref: Any) -> None:
        x = x_ref[...] * 0.5
        e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True) + bias_ref[...]

    return by_rows(kernel, x, bias)


def bias_left_outside(x: jax.Array, bias: jax.Array) -> Any:
    """Wrong: the bias is still a launch of its own."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        x = x_ref[...] * 0.5
        e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)

    return by_rows(kernel, x) + bias


def bias_inside_the_exponent(x: jax.Array, bias: jax.Array) -> Any:
    """Wrong: the bias is added before the softmax."""

    def kernel(x_ref: Any, bias_ref: Any, o_ref: Any) -> None:
        x = x_ref[...] * 0.5 + bias_ref[...]
        e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)

    return by_rows(kernel, x, bias)


def no_maximum_subtracted(x: jax.Array, bias: jax.Array) -> Any:
    """Wrong: exp overflows, and infinity over infinity is NaN."""

    def kernel(x_ref: Any, bias_ref: Any, o_ref: Any) -> None:
        e = jnp.exp(x_ref[...] * 0.5)
        o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True) + bias_ref[...]

    return by_rows(kernel, x, bias)


WRONG: tuple[tuple[Call, str], ...] = (
    (bias_left_outside, "1 operation outside the kernel: add"),
    (bias_inside_the_exponent, "Hint: the bias is added to the softmax"),
    (no_maximum_subtracted, "Hint: exp overflows"),
)

# Operations that XLA turns into no launch: they only say how an array is looked at.
_VIEWS = {"broadcast_in_dim", "reshape", "squeeze", "pallas_call", "jit", "copy"}


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def check(function: Call) -> None:
    """Run ``function(x, bias)`` and compare with softmax(x / 2) + bias, then count its launches.

    Args:
        function: Takes x, f32[48, 256], and bias, f32[1, 256]; returns f32[48, 256]. All of the
            work is to be in one kernel.

    Raises:
        AssertionError: The numbers are wrong, or something is left outside the kernel; says what.
    """
    rng = np.random.default_rng(0)
    x = (100 * rng.standard_normal((M, N))).astype(np.float32)
    bias = rng.standard_normal((1, N)).astype(np.float32)
    x64, bias64 = x.astype(np.float64), bias.astype(np.float64)

    def added_inside(got: Any, want: Any) -> bool:
        return np.allclose(got, _softmax(x64 / 2 + bias64), atol=1e-4)

    agree(
        run(function, x, bias, call="your function(x, bias)"),
        _softmax(x64 / 2) + bias64,
        call="your function(x, bias)",
        rtol=1e-5,
        atol=1e-5,
        hints=(
            Hint("exp overflows: subtract the row's maximum first.", has_nan),
            Hint("the bias is added to the softmax, not to its argument.", added_inside),
        ),
    )
    program = trace(function, (x, bias))
    outside = [
        equation.primitive.name
        for equation in equations(program.jaxpr.jaxpr, inside_kernels=False)
        if equation.primitive.name not in _VIEWS
    ]
    if outside or len(program.kernels) != 1:
        raise AssertionError(
            f"{len(program.kernels)} kernel and {len(outside)} "
            f"operation{'s' * (len(outside) != 1)} outside the kernel: {', '.join(outside)}. "
            "XLA cannot fuse them into a kernel; each reads and writes the whole array once more"
        )
