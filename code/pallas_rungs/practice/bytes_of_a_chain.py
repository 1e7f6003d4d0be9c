"""Exercise: how many bytes a chain of programs moves, when each operation is one of its own."""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp

Count = Callable[[Any], int]


def size(variables: Iterable[Any]) -> int:
    """Return the bytes of variables of a jaxpr; a literal is part of the program and has none."""
    return sum(
        one.aval.size * one.aval.dtype.itemsize
        for one in variables
        if not isinstance(one, jax.extend.core.Literal)
    )


def starter(jaxpr: Any) -> int:
    """The floor: what goes into the whole chain and what comes out of it."""
    return size(jaxpr.invars) + size(jaxpr.outvars)


def solution(jaxpr: Any) -> int:
    """Each equation reads its operands, each once, and writes its results."""
    return sum(size(dict.fromkeys(variables(it))) + size(it.outvars) for it in jaxpr.eqns)


def variables(equation: Any) -> list[Any]:
    """Return the operands of an equation that are variables."""
    return [one for one in equation.invars if not isinstance(one, jax.extend.core.Literal)]


def results_only(jaxpr: Any) -> int:
    """Wrong: counts what is written."""
    return sum(size(it.outvars) for it in jaxpr.eqns)


def each_array_once(jaxpr: Any) -> int:
    """Wrong: an array that two equations need is read by both."""
    return size(jaxpr.invars) + 2 * sum(size(it.outvars) for it in jaxpr.eqns)


def operands_twice(jaxpr: Any) -> int:
    """Wrong: an operand that stands in an equation twice is read once."""
    return sum(size(variables(it)) + size(it.outvars) for it in jaxpr.eqns)


WRONG: tuple[tuple[Count, str], ...] = (
    (starter, "Hint: what one program hands to the next goes through HBM"),
    (results_only, "Hint: a program reads its operands, too"),
    (each_array_once, "Hint: an array is read by every program that needs it"),
    (operands_twice, "Hint: x * x reads x once"),
)


def cubes(x: jax.Array) -> jax.Array:
    """A chain whose every array is needed once, but for x."""
    return x * x * x


def rms_norm(x: jax.Array) -> jax.Array:
    """A chain with a square, a column of sums, and rows that are needed twice."""
    wide = x.astype(jnp.float32)
    mean = jnp.sum(wide * wide, axis=1, keepdims=True) / x.shape[1]
    return (wide * jax.lax.rsqrt(mean + 1e-6)).astype(x.dtype)


EXPECTED: tuple[tuple[Callable[..., jax.Array], tuple[int, int], int], ...] = (
    # x * x: x and a result; times x: the square, x and a result; 4 bytes each.
    (cubes, (8, 128), 5 * 8 * 128 * 4),
)


def check(count: Count) -> None:
    """Count the chains of this module, with numbers of float32 and of bfloat16.

    Args:
        count: called with a jaxpr; returns bytes.

    Raises:
        AssertionError: a count is another one; holds both numbers and a hint.
    """
    for chain, dtype in ((cubes, "float32"), (rms_norm, "float32"), (rms_norm, "bfloat16")):
        jaxpr = jax.make_jaxpr(chain)(jax.ShapeDtypeStruct((64, 256), jnp.dtype(dtype))).jaxpr
        got, want = count(jaxpr), solution(jaxpr)
        if got != want:
            hints = {wrong(jaxpr): hint for wrong, hint in reversed(WRONG)}
            raise AssertionError(
                f"{chain.__name__} of {dtype}, (64, 256): {got} bytes, and it is {want}.\n"
                f"{hints.get(got, 'Hint: take one equation after the other')}"
            )
