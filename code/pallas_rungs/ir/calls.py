"""The custom calls that kernels become, found in a lowered program, and what they say.

Whatever the compiler, a kernel leaves jax as one custom call that carries a module of its own as
MLIR bytecode. Only where it is kept differs: in JSON for Mosaic on a TPU, in a dictionary of
attributes for the two compilers for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.operations import walked


def custom_calls_to(lowered: Any, *targets: str) -> Iterator[tuple[str, Any]]:
    """Yield the custom calls to some targets, as (target, operation), in the program's order.

    Args:
      lowered: what `jax.jit(f).trace(*args).lower(…)` gave, for whatever platform.
      *targets: their `call_target_name`.
    """
    for operation in walked(lowered.compiler_ir("stablehlo").operation):
        if operation.name == "stablehlo.custom_call":
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
            if target in targets:
                yield target, operation


def configuration(call: Any, target: str) -> dict[str, Any]:
    """Return what a custom call for a GPU says of itself: attributes by name.

    Raises:
      IRError: it has no dictionary `mhlo.backend_config`.
    """
    if "mhlo.backend_config" not in call.attributes:
        raise IRError(f"the custom call {target}", "an attribute mhlo.backend_config", str(call))
    found: Any = ir.DictAttr(call.attributes["mhlo.backend_config"])
    return {entry.name: entry.attr for entry in found}


def entry(configuration: dict[str, Any], name: str, target: str) -> Any:
    """Return an attribute of a call's configuration.

    Raises:
      IRError: it has none of that name; the message lists those that it has.
    """
    if name not in configuration:
        raise IRError(
            f"the configuration of {target}", f"an entry {name!r}", ", ".join(sorted(configuration))
        )
    return configuration[name]
