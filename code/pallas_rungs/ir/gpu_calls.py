"""The custom calls that kernels for a GPU become, found in a lowered program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from pallas_rungs.ir.errors import IRError


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


def walked(operation: Any) -> Iterator[Any]:
    """Yield the operations inside one, at any depth, in the order of the text."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from walked(inner.operation)


def counted(module: Any) -> tuple[tuple[str, int], ...]:
    """Return full names of the operations of a module, and how often each stands in it."""
    counts = Counter(operation.name for operation in walked(module.operation))
    return tuple(sorted(counts.items()))


def by_dialect(operations: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return the number of operations of each dialect, by its name."""
    counts: Counter[str] = Counter()
    for name, count in operations:
        counts[name.partition(".")[0]] += count
    return dict(sorted(counts.items()))
