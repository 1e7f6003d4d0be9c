"""The rules by which Pallas lowers for a GPU: one dictionary of Triton's, four of Mosaic GPU's.

The dictionaries are filled while the front ends are imported, which importing this module does.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import jax
from jax._src.core import jaxprs_in_params
from jax._src.pallas.mosaic_gpu.lowering import mosaic_lowering_rules
from jax._src.pallas.triton.lowering import triton_lowering_rules
from jax.extend.core import Primitive

for _front_end in ("mosaic_gpu", "triton"):
    importlib.import_module(f"jax.experimental.pallas.{_front_end}")

_CALLS: Final = ("pallas_call", "core_map", "mpmd_map")
"""Primitives that hold a kernel's body."""


@dataclass(frozen=True)
class Equation:
    """An equation of a kernel's body.

    Attributes:
      primitive: what it applies; two primitives may have one name.
      result: types of its results; empty for one that has none.
      depth: how many equations of the body it is inside of.
    """

    primitive: Primitive
    result: str
    depth: int

    def __str__(self) -> str:
        made = f"{self.result} = " if self.result else ""
        return f"{'  ' * self.depth}{made}{self.primitive.name}"


def triton_rules() -> frozenset[Primitive]:
    """Return the primitives that Pallas has a rule for in Triton."""
    return frozenset(triton_lowering_rules)


def mosaic_gpu_rules() -> dict[tuple[str, str], frozenset[Primitive]]:
    """Return the primitives that have a rule in Mosaic GPU.

    Returns:
      For each of its dictionaries: (semantics that is lowered with, semantics of the thread that
      the user writes for) -> primitives. `plgpu.kernel` takes `("Warpgroup", "Warpgroup")`.
    """
    return {
        (lowering.name, thread.name): frozenset(rules)
        for (lowering, thread), rules in mosaic_lowering_rules.items()
    }


def names(primitives: frozenset[Primitive]) -> tuple[str, ...]:
    """Return the names of primitives, sorted; a name that two of them share stands twice."""
    return tuple(sorted(primitive.name for primitive in primitives))


def kernel_equations(function: Any, *args: Any) -> tuple[Equation, ...]:
    """Trace a function and return the equations of its kernels' bodies, in order.

    Args:
      function: calls one kernel or several.
      *args: arrays, or shapes and dtypes.
    """
    closed = jax.make_jaxpr(function)(*args)
    return tuple(
        equation for body in _bodies(closed.jaxpr) for equation in _equations(body, depth=0)
    )


def _bodies(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        inner = [getattr(it, "jaxpr", it) for it in _inner(equation)]
        if equation.primitive.name in _CALLS:
            yield from inner
        else:
            for each in inner:
                yield from _bodies(each)


def _inner(equation: Any) -> list[Any]:
    if equation.primitive.name == "pallas_call":
        return [equation.params["jaxpr"]]
    return list(jaxprs_in_params(equation.params))


def _equations(jaxpr: Any, depth: int) -> Iterator[Equation]:
    for equation in jaxpr.eqns:
        result = ", ".join(
            var.aval.str_short(short_dtypes=True)
            for var in equation.outvars
            if type(var).__name__ != "DropVar"
        )
        yield Equation(equation.primitive, result, depth)
        for inner in jaxprs_in_params(equation.params):
            yield from _equations(getattr(inner, "jaxpr", inner), depth + 1)
