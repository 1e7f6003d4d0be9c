"""Exercise: give a SiLU kernel its gradient, so that it holds in float32 and in float64."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.ladder import Report
from pallas_rungs.ladder.program import trace
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, run

SiLU = Callable[[jax.Array], jax.Array]


def silu_kernel(x_ref: Any, o_ref: Any) -> None:
    """The value: x times sigmoid of x."""
    o_ref[...] = x_ref[...] * jax.nn.sigmoid(x_ref[...])


def starter(x: jax.Array) -> jax.Array:
    """The value, without a gradient."""
    like_x = jax.ShapeDtypeStruct(x.shape, x.dtype)
    y: jax.Array = pl.pallas_call(silu_kernel, out_shape=like_x)(x)
    return y


def solution(x: jax.Array) -> jax.Array:
    """SiLU by one kernel; its gradient by another, which is given x and the cotangent."""
    like_x = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def silu_grad_kernel(x_ref: Any, dy_ref: Any, dx_ref: Any) -> None:
        x = x_ref[...]
        s = jax.nn.sigmoid(x)
        dx_ref[...] = dy_ref[...] * s * (1 + x * (1 - s))

    @jax.custom_vjp
    def value(x: jax.Array) -> Any:
        return pl.pallas_call(silu_kernel, out_shape=like_x)(x)

    def forward(x: jax.Array) -> tuple[Any, jax.Array]:
        return value(x), x

    def backward(x: jax.Array, dy: jax.Array) -> tuple[Any]:
        return (pl.pallas_call(silu_grad_kernel, out_shape=like_x)(x, dy),)

    value.defvjp(forward, backward)
    y: jax.Array = value(x)
    return y


def _launch(kernel: Callable[..., None], *operands: jax.Array, dtype: Any = None) -> jax.Array:
    x = operands[0]
    y: jax.Array = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)
    )(*operands)
    return y


def _gradient_kernel(x_ref: Any, dy_ref: Any, dx_ref: Any) -> None:
    x, s = x_ref[...], jax.nn.sigmoid(x_ref[...])
    dx_ref[...] = dy_ref[...] * s * (1 + x * (1 - s))


def _with_backward(name: str, backward: Callable[..., Any], save: Callable[[Any], Any]) -> SiLU:
    """A wrong solution: the right value, and the backward pass that is given."""

    def value(x: jax.Array) -> jax.Array:
        return _launch(silu_kernel, x)

    value.__name__ = name
    rule = jax.custom_vjp(value)
    rule.defvjp(lambda x: (value(x), save(x)), backward)
    return rule


def _identity(x: Any) -> Any:
    return x


def _without_the_second_term(x: jax.Array, dy: jax.Array) -> tuple[jax.Array]:
    def kernel(x_ref: Any, dy_ref: Any, dx_ref: Any) -> None:
        dx_ref[...] = dy_ref[...] * jax.nn.sigmoid(x_ref[...])

    return (_launch(kernel, x, dy),)


def _without_the_cotangent(x: jax.Array, dy: jax.Array) -> tuple[jax.Array]:
    return (_launch(_gradient_kernel, x, jnp.ones_like(dy)),)


def _from_a_short_sigmoid(saved: Any, dy: jax.Array) -> tuple[jax.Array]:
    def kernel(x_ref: Any, s_ref: Any, dy_ref: Any, dx_ref: Any) -> None:
        s = s_ref[...].astype(dx_ref.dtype)
        dx_ref[...] = dy_ref[...] * s * (1 + x_ref[...] * (1 - s))

    x, s = saved
    return (_launch(kernel, x, s, dy),)


def _not_a_tuple(x: jax.Array, dy: jax.Array) -> jax.Array:
    return _launch(_gradient_kernel, x, dy)


def _in_jax_numpy(x: jax.Array, dy: jax.Array) -> tuple[jax.Array]:
    s = jax.nn.sigmoid(x)
    return (dy * s * (1 + x * (1 - s)),)


def _float32_inside(x: jax.Array, dy: jax.Array) -> tuple[jax.Array]:
    def kernel(x_ref: Any, dy_ref: Any, dx_ref: Any) -> None:
        x = x_ref[...].astype(jnp.float32)
        s = jax.nn.sigmoid(x)
        dx_ref[...] = (dy_ref[...] * s * (1 + x * (1 - s))).astype(dx_ref.dtype)

    return (_launch(kernel, x, dy),)


def float32_output(x: jax.Array) -> jax.Array:
    """Wrong: the output is float32, whatever the input is."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = (x_ref[...] * jax.nn.sigmoid(x_ref[...])).astype(jnp.float32)

    rule = jax.custom_vjp(lambda x: _launch(kernel, x, dtype=jnp.float32))
    rule.defvjp(
        lambda x: (_launch(kernel, x, dtype=jnp.float32), x),
        lambda x, dy: (_launch(_gradient_kernel, x, dy.astype(x.dtype)),),
    )
    y: jax.Array = rule(x)
    return y


def _saves_a_short_sigmoid(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x, jax.nn.sigmoid(x).astype(jnp.bfloat16)


WRONG: tuple[tuple[SiLU, str], ...] = (
    (float32_output, "has dtype float32, and should have float64.*out_shape"),
    (_with_backward("float32_inside", _float32_inside, _identity), "stop at those of float32"),
    (
        _with_backward("no_product_rule", _without_the_second_term, _identity),
        "x is a factor too",
    ),
    (_with_backward("no_cotangent", _without_the_cotangent, _identity), "multiply it by dy"),
    (
        _with_backward("short_sigmoid", _from_a_short_sigmoid, _saves_a_short_sigmoid),
        "rounded to bfloat16",
    ),
    (_with_backward("not_a_tuple", _not_a_tuple, _identity), "raised TypeError: Custom VJP bwd"),
    (_with_backward("in_jax_numpy", _in_jax_numpy, _identity), "backward pass launches no kernel"),
)


def check(silu_pl: SiLU) -> Report:
    """Insist that SiLU and its gradient are right in float32 and in float64, both by kernels.

    float64 is switched on for its part of the check, and off again after it.

    Args:
        silu_pl: takes x, f32[16, 256] or f64[16, 256], and returns x times sigmoid of x, of the
            same dtype.

    Returns:
        The report of the gradient's climb in float32, when everything is in order.

    Raises:
        AssertionError: says what was found, and what to look at.
    """
    rng = np.random.default_rng(0)
    x, weights = 3 * rng.standard_normal((16, 256)), rng.uniform(-1, 1, (16, 256))

    def gradient(x: jax.Array, dy: jax.Array) -> Any:
        return jax.vjp(silu_pl, x)[1](dy)[0]

    # A few roundings in the dtype; near the derivative's zero an absolute error, in units of dy.
    with jax.enable_x64(False):
        _check_numbers(silu_pl, gradient, x.astype(np.float32), weights.astype(np.float32), 2e-6)
    with jax.enable_x64(True):
        _check_numbers(silu_pl, gradient, x, weights, 1e-13)

    small, dy = x.astype(np.float32), weights.astype(np.float32)
    both = trace(lambda x, dy: jax.vjp(silu_pl, x)[1](dy), (small, dy))
    if len(both.kernels) < 2:
        raise AssertionError(
            "the backward pass launches no kernel: right numbers, but the exercise asks for a "
            "second pl.pallas_call"
        )
    return climbs(
        gradient,
        small,
        dy,
        reference=lambda x, dy: _gradient(np.asarray(x, np.float64), dy),
        rungs=("simulate", "lower"),  # interpreted above
        rtol=2e-6,
        atol=2e-6,
        name=getattr(silu_pl, "__name__", "silu_pl"),
    )


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gradient(x: Any, dy: Any) -> Any:
    s = _sigmoid(x)
    return dy * s * (1 + x * (1 - s))


def _check_numbers(
    silu_pl: SiLU, gradient: Callable[..., Any], x: Any, dy: Any, tolerance: float
) -> None:
    where = f"for {x.dtype} x"
    x64, dy64 = x.astype(np.float64), dy.astype(np.float64)
    s = _sigmoid(x64)

    def off_by(least: float, most: float) -> Callable[[Any, Any], bool]:
        return lambda got, want: bool(least < np.max(np.abs(got - want)) < most)

    hints = (
        Hint(
            "The result keeps the dtype of x: look at out_shape and at each astype.",
            lambda got, want: x.dtype == np.float64 and got.dtype == np.float32,
        ),
        Hint(
            "The digits stop at those of float32: somewhere on the way there is a float32.",
            lambda got, want: x.dtype == np.float64 and off_by(1e-12, 1e-5)(got, want),
        ),
        Hint(
            "That is dy times the sigmoid alone. By the product rule, x is a factor too: add x "
            "times the derivative of the sigmoid, which is s (1 - s).",
            close_to(dy64 * s),
        ),
        Hint(
            "That is the derivative, whatever dy is: multiply it by dy.",
            close_to(_gradient(x64, 1.0)),
        ),
        Hint(
            "Right to two or three digits: is something saved for the backward pass rounded to "
            "bfloat16?",
            off_by(1e-5, 2e-2),
        ),
    )
    call = f"silu_pl(x), {where},"
    got = run(silu_pl, x, call=call)
    agree(got, x64 * s, call=call, rtol=tolerance, atol=tolerance, hints=hints, dtype=x.dtype)

    call = f"the gradient of silu_pl, {where},"
    got, want = run(gradient, x, dy, call=call), _gradient(x64, dy64)
    agree(got, want, call=call, rtol=tolerance, atol=tolerance, hints=hints, dtype=x.dtype)
