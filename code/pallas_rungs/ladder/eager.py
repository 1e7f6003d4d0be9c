"""Programs that cannot be traced as a whole: run them as they are, and note each kernel they call.

Some functions look at values between kernels (`np.asarray(kernel(x))`). They run eagerly only. The
interpreter then comes from jax's own switch, and the kernels are recorded as they are launched, so
that each can still be lowered and compiled by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import jax
import numpy as np

from pallas_rungs.ladder.program import Program

CONCRETIZATION_ERRORS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""What a function raises that needs values while it is being traced."""


@dataclass
class Launches:
    """The kernels that were launched while recording: primitive, operand types, parameters."""

    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def as_program(self) -> Program:
        """Return a program of these kernels, each with operands of its own (zeros).

        Raises:
          Exception: what a kernel's primitive raises when it is bound again.
        """
        operands = [
            np.zeros(aval.shape, aval.dtype) for _, avals, _ in self.calls for aval in avals
        ]

        def launch_all(*flat: Any) -> list[Any]:
            remaining, results = iter(flat), []
            for primitive, avals, params in self.calls:
                results += primitive.bind(*(next(remaining) for _ in avals), **params)
            return results

        jaxpr = jax.make_jaxpr(launch_all)(*operands)
        tree = jax.tree.structure([0] * len(jaxpr.out_avals))
        return Program(jaxpr, tuple(operands), tree, eager=True)


def run(
    function: Callable[..., Any], args: Sequence[Any], interpret: Any, launches: Launches
) -> Any:
    """Run `function(*args)` eagerly with every kernel on `interpret`.

    Args:
      function: the program.
      args: its arguments.
      interpret: the interpreter for its kernels.
      launches: gets the kernels as they are launched, also where one of them fails.

    Returns:
      The result as NumPy arrays.

    Raises:
      Exception: whatever the function raises.
    """
    jax.clear_caches()
    with _forced(interpret), _recording(launches):
        return jax.tree.map(np.asarray, function(*args))


@contextlib.contextmanager
def _forced(interpret: Any) -> Iterator[None]:
    from jax._src import config

    switch = config.pallas_tpu_interpret_mode_context_manager
    before = switch.swap_local(interpret)
    try:
        yield
    finally:
        switch.set_local(before)


@contextlib.contextmanager
def _recording(launches: Launches) -> Iterator[None]:
    from jax._src.pallas.mpmd import mpmd_map_p
    from jax._src.pallas.pallas_call import pallas_call_p

    def recorder(primitive: Any) -> Callable[..., Any]:
        bind = primitive.bind

        def record(*args: Any, **params: Any) -> Any:
            avals = tuple(jax.typeof(arg) for arg in args)
            launches.calls.append((primitive, avals, {**params, "interpret": False}))
            return bind(*args, **params)

        return record

    with (
        mock.patch.object(pallas_call_p, "bind", recorder(pallas_call_p)),
        mock.patch.object(mpmd_map_p, "bind", recorder(mpmd_map_p)),
    ):
        yield
