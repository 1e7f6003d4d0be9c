"""Bounds from a chip's two rates: operations of its matrix units, and bytes of its main memory.

A bound says what no kernel of that work can pass. It says nothing of what a kernel reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jax
from jax._src.jaxpr_util import all_eqns

from pallas_rungs.performance.chip_table import ChipFacts

# fmt: off
ELEMENTWISE: Final = frozenset({
    "abs", "add", "and", "clamp", "cos", "div", "eq", "erf", "exp", "exp2", "floor", "ge", "gt",
    "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne",
    "neg", "not", "or", "pow", "rem", "round", "rsqrt", "select_n", "sign", "sin", "sqrt", "square",
    "sub", "tan", "tanh", "xor",
})
"""One operation for each element of the result; an exponential counts as much as a sum."""

REDUCTIONS: Final = frozenset({
    "argmax", "argmin", "cummax", "cumsum", "reduce_and", "reduce_max", "reduce_min", "reduce_or",
    "reduce_sum",
})
"""One operation for each element that goes in."""

MOVES: Final = frozenset({
    "broadcast_in_dim", "concatenate", "convert_element_type", "dynamic_slice", "get", "iota",
    "multiple_of", "num_programs", "program_id", "reshape", "rev", "slice", "squeeze",
    "stop_gradient", "swap", "transpose",
})
"""Operations that move or name values, and compute none."""
# fmt: on


@dataclass(frozen=True)
class Operations:
    """Arithmetic of a kernel over its whole grid.

    Attributes:
      matrix: products and sums of `dot_general`, two for each term.
      vector: operations on single elements of arrays; scalars are not counted.
      in_branches: how many of both stand in a branch, and are counted for every program, whether
        or not it takes the branch. Where this is 0 the counts are exact, else at most so much.
    """

    matrix: int = 0
    vector: int = 0
    in_branches: int = 0

    @property
    def total(self) -> int:
        """Both kinds together."""
        return self.matrix + self.vector

    def __add__(self, other: Operations) -> Operations:
        return Operations(
            self.matrix + other.matrix,
            self.vector + other.vector,
            self.in_branches + other.in_branches,
        )

    def times(self, count: int) -> Operations:
        """Return the operations of so many repetitions."""
        return Operations(self.matrix * count, self.vector * count, self.in_branches * count)


@dataclass(frozen=True)
class Bound:
    """What one of a chip's two rates allows a kernel.

    Attributes:
      rate: operations a second that the kernel cannot pass.
      by: which of the two sets it: `bandwidth` or `matrix units`.
      share: of the matrix units' rate.
    """

    rate: float
    by: str
    share: float


def count_operations(function: Callable[..., Any], *args: Any) -> Operations:
    """Count the arithmetic of the kernels that a function calls, from their jaxprs.

    Args:
      function: calls `pallas_call`; it is traced, not run.
      *args: arrays, or `jax.ShapeDtypeStruct`s of theirs.

    Raises:
      LookupError: there is no kernel, or one holds a primitive that has no count here, or a loop or
        a grid whose length is known at run time only. Nothing is counted as zero in silence.
    """
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    kernels = [eqn for _, eqn in all_eqns(jaxpr) if eqn.primitive.name == "pallas_call"]
    if not kernels:
        raise LookupError("the function calls no pallas_call, so there is no kernel to count")
    found = Operations()
    for eqn in kernels:
        grid = eqn.params["grid_mapping"].grid
        if not all(isinstance(n, int) for n in grid):
            raise LookupError(f"the grid {grid} is known at run time only; give it static sizes")
        found += _counted(eqn.params["jaxpr"]).times(math.prod(grid))
    return found


def tile_intensity(bm: int, bn: int, itemsize: int = 2) -> float:
    """Return the operations of a step of a tiled product for each byte that it brings in.

    A step multiplies (bm, bk) by (bk, bn): 2 bm bk bn operations on (bm + bn) bk elements. bk
    cancels.

    Args:
      bm: rows of a block of the product.
      bn: its columns.
      itemsize: bytes of an element of the operands.
    """
    return 2 * bm * bn / ((bm + bn) * itemsize)


def bound(chip: ChipFacts, intensity: float, dtype: str = "bfloat16") -> Bound:
    """Return what a chip's rates allow work of this intensity.

    Args:
      chip: from `chip_table`.
      intensity: operations for each byte that crosses between HBM and VMEM.
      dtype: of the operands of the matrix units.

    Raises:
      LookupError: jax states no rate of the chip for the dtype.
    """
    peak = chip.rate(dtype)
    by_memory = intensity * chip.bandwidth
    if by_memory < peak:
        return Bound(by_memory, "bandwidth", by_memory / peak)
    return Bound(float(peak), "matrix units", 1.0)


def _counted(jaxpr: Any) -> Operations:
    found = Operations()
    for eqn in jaxpr.eqns:
        found += _of_equation(eqn)
    return found


def _of_equation(eqn: Any) -> Operations:
    name, params = eqn.primitive.name, eqn.params
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        terms = math.prod(eqn.invars[0].aval.shape[axis] for axis in contracted)
        return Operations(matrix=2 * terms * math.prod(eqn.outvars[0].aval.shape))
    if name in ELEMENTWISE:
        return Operations(vector=_elements(eqn.outvars[0]))
    if name in REDUCTIONS:
        return Operations(vector=_elements(eqn.invars[0]))
    if name in MOVES:
        return Operations()
    if name == "cond":
        most = max((_counted(branch.jaxpr) for branch in params["branches"]), key=lambda o: o.total)
        return Operations(most.matrix, most.vector, most.total)
    if name == "scan":
        return _counted(params["jaxpr"].jaxpr).times(params["length"])
    if name in ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"):
        inner = params.get("jaxpr") or params["call_jaxpr"]
        return _counted(getattr(inner, "jaxpr", inner))
    raise LookupError(
        f"the primitive {name!r} has no count: add it to one of the sets in "
        "performance/roofline.py, or leave this kernel out"
    )


def _elements(variable: Any) -> int:
    """How many elements of an array; none of a scalar, which is not the vector unit's."""
    shape = variable.aval.shape
    return math.prod(shape) if shape else 0
