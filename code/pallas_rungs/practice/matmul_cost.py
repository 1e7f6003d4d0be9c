"""Exercise: tell XLA what a matmul kernel costs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

Estimate = Callable[[Any, Any], pl.CostEstimate]

SHAPES = (
    ((256, 512), (512, 128), "float32"),
    ((1, 1024), (1024, 1), "float32"),
    ((256, 512), (512, 384), "bfloat16"),
)


def starter(x: Any, y: Any) -> pl.CostEstimate:
    """An estimate of nothing."""
    del x, y
    return pl.CostEstimate(flops=0, transcendentals=0, bytes_accessed=0)


def solution(x: Any, y: Any) -> pl.CostEstimate:
    """A product and a sum for each of M * K * N terms; both operands in, a float32 product out."""
    (M, K), N = x.shape, y.shape[1]
    read = x.size * x.dtype.itemsize + y.size * y.dtype.itemsize
    return pl.CostEstimate(flops=2 * M * K * N, transcendentals=0, bytes_accessed=read + 4 * M * N)


def half_the_operations(x: Any, y: Any) -> pl.CostEstimate:
    """Wrong: counts the products and forgets the sums."""
    right = solution(x, y)
    return pl.CostEstimate(right.flops // 2, 0, right.bytes_accessed)


def counts_elements(x: Any, y: Any) -> pl.CostEstimate:
    """Wrong: elements, not bytes."""
    elements = x.size + y.size + x.shape[0] * y.shape[1]
    return pl.CostEstimate(solution(x, y).flops, 0, elements)


def product_in_the_operands_dtype(x: Any, y: Any) -> pl.CostEstimate:
    """Wrong: the product is float32, whatever the operands are."""
    elements = x.size + y.size + x.shape[0] * y.shape[1]
    return pl.CostEstimate(solution(x, y).flops, 0, elements * x.dtype.itemsize)


WRONG: tuple[tuple[Estimate, str], ...] = (
    (half_the_operations, "Hint: a term is a product and a sum"),
    (counts_elements, "Hint: these are elements"),
    (product_in_the_operands_dtype, "Hint: the product is float32"),
)


def check(estimate: Estimate) -> None:
    """Compare an estimate with what the shapes say.

    Args:
        estimate: Takes the two operands of a matmul, (M, K) and (K, N), arrays or
            `jax.ShapeDtypeStruct`; returns the cost of a kernel that reads each operand once and
            writes a float32 product once.

    Raises:
        AssertionError: A field is off; says which, for which shapes, and a hint.
    """
    for left, right, dtype in SHAPES:
        x = jax.ShapeDtypeStruct(left, jnp.dtype(dtype))
        y = jax.ShapeDtypeStruct(right, jnp.dtype(dtype))
        got, want = estimate(x, y), solution(x, y)
        if not isinstance(got, pl.CostEstimate):
            raise AssertionError(f"a {type(got).__name__} came back: return a pl.CostEstimate")
        for field, hints in {
            "flops": {want.flops // 2: "a term is a product and a sum: two operations."},
            "transcendentals": {},
            "bytes_accessed": {
                counts_elements(x, y).bytes_accessed: "these are elements; bytes are asked for.",
                product_in_the_operands_dtype(x, y).bytes_accessed: "the product is float32.",
            },
        }.items():
            found, wanted = getattr(got, field), getattr(want, field)
            if found != wanted:
                told = f"\nHint: {hints[found]}" if found in hints else ""
                raise AssertionError(
                    f"{field} of {dtype} {left} @ {right} is {found}, and should be {wanted}{told}"
                )
