"""Exercise: how many bytes a chain of programs moves, where each operation is one of its own."""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

Count = Callable[[Any], int]


def size(variables: Iterable[Any]) -> int:
    """Return the bytes of variables of a jaxpr; a literal is part of the program and has none."""
    arrays = [one.aval for one in variables if not isinstance(one, Literal)]
    return sum(aval.size * aval.dtype.itemsize for aval in arrays)


def starter(jaxpr: Any) -> int:
    """The floor: what goes into the whole chain and what comes out of it."""
    return size(jaxpr.invars) + size(jaxpr.outvars)


def solution(jaxpr: Any) -> int:
    """Each equation reads its operands, each of them once, and writes its results."""
    moved = 0
    for equation in jaxpr.eqns:
        operands = {id(one): one for one in equation.invars}
        moved += size(operands.values()) + size(equation.outvars)
    return moved


def results_only(jaxpr: Any) -> int:
    """Wrong: counts what is written."""
    return sum(size(equation.outvars) for equation in jaxpr.eqns)


def each_array_once(jaxpr: Any) -> int:
    """Wrong: an array that two equations need is read by both."""
    return size(jaxpr.invars) + 2 * results_only(jaxpr) - size(jaxpr.outvars)


def operands_twice(jaxpr: Any) -> int:
    """Wrong: an operand that stands in an equation twice is read once."""
    return sum(size(it.invars) + size(it.outvars) for it in jaxpr.eqns)


WRONG: tuple[tuple[Count, str], ...] = (
    (results_only, "Hint: a program reads its operands, too"),
    (each_array_once, "Hint: an array is read by every program that needs it"),
    (operands_twice, "Hint: a square reads its operand once"),
)


def cubes(x: jax.Array) -> jax.Array:
    """Two products, which share x."""
    return x * x * x


def scaled_rows(x: jax.Array) -> jax.Array:
    """RMSNorm without weights: a square, a sum for each row, and rows that are needed twice."""
    wide = x.astype(jnp.float32)
    mean = jnp.sum(wide * wide, axis=1, keepdims=True) / x.shape[1]
    return (wide * jax.lax.rsqrt(mean + 1e-6)).astype(x.dtype)


def check(count: Count) -> None:
    """Count the bytes of two chains, in float32 and in bfloat16.

    Args:
        count: called with a jaxpr; returns the bytes that its equations move, each by itself.

    Raises:
        AssertionError: a count is another one; holds both numbers and a hint.
    """
    hints = (*WRONG, (starter, "Hint: what one program hands to the next goes through HBM"))
    for chain, dtype in ((scaled_rows, "float32"), (scaled_rows, "bfloat16"), (cubes, "float32")):
        jaxpr = jax.make_jaxpr(chain)(jax.ShapeDtypeStruct((64, 256), jnp.dtype(dtype))).jaxpr
        got, want = count(jaxpr), solution(jaxpr)
        if got != want:
            matching = [hint for wrong, hint in hints if wrong(jaxpr) == got]
            raise AssertionError(
                f"{chain.__name__} of {dtype}, (64, 256): {got} bytes, and it is {want}.\n"
                f"{matching[0] if matching else 'Hint: take one equation after the other'}"
            )
