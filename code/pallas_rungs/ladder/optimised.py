"""The optimised HLO of a program: what XLA has made of it, for this CPU or for a TPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs.export import export_program


def hlo_for_cpu(function: Callable[..., Any], *args: Any) -> str:
    """Return the optimised HLO that XLA makes of a function on this machine's CPU.

    Args:
      function: Takes arrays; a Pallas kernel in it must be interpreted.
      *args: Arrays or `jax.ShapeDtypeStruct`.
    """
    return jax.jit(function).lower(*args).compile().as_text() or ""


def hlo_for_tpu(function: Callable[..., Any], *args: Any, chip: str = "v5e") -> str | None:
    """Return the optimised HLO that libtpu makes of a function, with no TPU attached.

    Args:
      function: Takes arrays; Pallas kernels in it are compiled.
      *args: Arrays, or `jax.ShapeDtypeStruct` where only the shape matters.
      chip: The chip to compile for.

    Returns:
      The text, or None on a machine without libtpu.

    Raises:
      ValueError: The chip is unknown.
      RuntimeError: The compiler did not accept the program; says what it said.
    """
    from pallas_rungs.compilers.libtpu import compile_exported, why_unavailable

    if why_unavailable():
        return None
    exported = export_program(Problem("program", function, args), chip)
    outcome = compile_exported(exported.serialized, chip, hlo=True)
    if outcome.kind != "compiled":
        raise RuntimeError(f"the compiler for {chip} {outcome.kind} it: {outcome.message}")
    return outcome.hlo
