"""Operations of MLIR modules: walking through them, and counting them by name and by dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any


class ByDialect:
    """What has its operations counted, and so those of each dialect.

    Attributes:
      operations: full name of an operation -> how often it stands there.
    """

    operations: tuple[tuple[str, int], ...]

    @property
    def dialects(self) -> dict[str, int]:
        """Name of a dialect -> how many operations of it."""
        return by_dialect(self.operations)

    @property
    def dialects_text(self) -> str:
        """The dialects in a line, for printing."""
        return ", ".join(f"{name} {count}" for name, count in self.dialects.items())


def walked(operation: Any) -> Iterator[Any]:
    """Yield the operations inside one, at any depth, in the order of the text."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from walked(inner.operation)


def counted(module: Any) -> tuple[tuple[str, int], ...]:
    """Return full names of the operations of a module, and how often each stands in it."""
    return tuple(sorted(Counter(operation.name for operation in walked(module.operation)).items()))


def by_dialect(operations: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return the number of operations of each dialect, by its name."""
    counts: Counter[str] = Counter()
    for name, count in operations:
        counts[name.partition(".")[0]] += count
    return dict(sorted(counts.items()))
