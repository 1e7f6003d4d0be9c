"""The custom calls that kernels for a GPU become, found in a lowered program."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.operations import walked


def configurations(lowered: Any, target: str) -> list[dict[str, Any]]:
    """Return what the custom calls of a target say of themselves, in the program's order.

    Args:
      lowered: what `jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",))` gave.
      target: their `call_target_name`.

    Returns:
      For each call the attributes of its `mhlo.backend_config`, by name.

    Raises:
      IRError: a call has no such dictionary.
    """
    found = []
    for operation in walked(lowered.compiler_ir("stablehlo").operation):
        attributes = operation.attributes
        if (
            operation.name != "stablehlo.custom_call"
            or ir.StringAttr(attributes["call_target_name"]).value != target
        ):
            continue
        if "mhlo.backend_config" not in attributes:
            raise IRError(
                f"the custom call {target}", "an attribute mhlo.backend_config", str(operation)
            )
        configuration: Any = ir.DictAttr(attributes["mhlo.backend_config"])
        found.append({entry.name: entry.attr for entry in configuration})
    return found


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
