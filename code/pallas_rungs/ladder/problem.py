"""What is tried: a function that calls a kernel, its arguments, and what the answer should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Problem:
    """One program to try on the rungs; equal to itself only, as arrays have no truth of equality.

    Attributes:
      name: what reports call it.
      function: called as `function(*args)`; calls a Pallas kernel somewhere inside.
      args: its arguments: arrays, pytrees of arrays, Python scalars, or anything else, which is
        then static (closed over, never traced).
      reference: called as `reference(*args)` with NumPy arrays where `args` holds arrays (floats of
        any width widened to float64); returns what `function` should return. None: numbers stay
        unchecked.
      rtol: relative tolerance; None takes the default of the output's dtype.
      atol: absolute tolerance; None takes the default of the output's dtype.
      simulations: further simulator settings, name → keyword arguments of
        `pltpu.InterpretParams`.
      factory: for programs that are made anew for each interpreter: called with `interpret`
        (True or interpreter parameters) it returns the function to run on that rung.
        `function` is then what `factory(False)` returned, or `factory` itself bound to False.
      kernel_alone: names of arguments that the reference has no parameter for and is not given.
    """

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    reference: Callable[..., Any] | None = None
    rtol: float | None = None
    atol: float | None = None
    simulations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    factory: Callable[[Any], Callable[..., Any]] | None = None
    kernel_alone: tuple[str, ...] = ()
