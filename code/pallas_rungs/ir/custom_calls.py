"""What every kernel of a lowered program has become, whichever compiler it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from pallas_rungs.ir import mosaic, mosaic_gpu, triton
from pallas_rungs.ir.calls import custom_calls_to
from pallas_rungs.ir.operations import ByDialect, counted


@dataclass(frozen=True)
class CustomCall(ByDialect):
    """A kernel's custom call.

    Attributes:
      target: which compiler it is for.
      operations: full name of an operation of the kernel's module -> how often it stands there.
    """

    target: str
    operations: tuple[tuple[str, int], ...]


def custom_calls(lowered: Any) -> tuple[CustomCall, ...]:
    """Read the custom call of each kernel in a lowered program, in order.

    Args:
      lowered: what `jax.jit(f).trace(*args).lower(…)` gave, for whatever platform.

    Raises:
      IRError: a kernel's custom call is not as this reader knows it.
    """
    return tuple(
        CustomCall(target, _READERS[target](call).operations)
        for target, call in custom_calls_to(lowered, *_READERS)
    )


def operations(lowered: Any) -> dict[str, int]:
    """Count the operations of the lowered program itself, by full name."""
    return dict(counted(lowered.compiler_ir("stablehlo")))


def _for_tpu(call: Any) -> mosaic.MosaicModule:
    return mosaic.decoded(ir.StringAttr(call.attributes["backend_config"]).value)


_READERS: dict[str, Callable[[Any], Any]] = {
    mosaic.TARGET: _for_tpu,
    triton.TARGET: triton.decoded,
    mosaic_gpu.TARGET: mosaic_gpu.decoded,
}
