"""All kernels of the book in one table, for whoever tries them one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pallas_rungs.kernels import (
    add,
    add_by_offsets,
    add_one_by_hand,
    matmul,
    matmul_rows_columns,
    scale,
    scale_double_buffered,
    scale_on_every_core,
    softmax,
    transpose,
)
from pallas_rungs.kernels.case import Case


@dataclass(frozen=True)
class Kernel:
    """A kernel's call with what it takes to try it.

    Attributes:
        name: The name of the call.
        call: The call, on the arguments of a case; it also takes ``interpret``.
        reference: The float64 result for the same arguments: an array or a pytree of arrays.
        cases: Returns the inputs to try.
        chips: The chips whose compiler accepts it, on every case.
        tool_cannot: Rungs whose tool cannot try it, and says so.
    """

    name: str
    call: Callable[..., Any]
    reference: Callable[..., Any]
    cases: Callable[[], tuple[Case, ...]]
    chips: tuple[str, ...]
    tool_cannot: tuple[str, ...] = ()


def kernel(module: ModuleType, name: str | None = None) -> Kernel:
    """Return the kernel of a module that keeps to the names of this package.

    Args:
        module: Holds ``<name>``, ``<module>_reference``, ``cases`` and ``CHIPS``, and
            ``TOOL_CANNOT`` where the tool of some rung cannot try it.
        name: Name of the call; the module's own last name by default.

    Returns:
        The kernel.
    """
    own = module.__name__.rpartition(".")[2]
    return Kernel(
        name=name or own,
        call=getattr(module, name or own),
        reference=getattr(module, f"{own}_reference"),
        cases=module.cases,
        chips=module.CHIPS,
        tool_cannot=getattr(module, "TOOL_CANNOT", ()),
    )


KERNELS = (
    kernel(add),
    kernel(add, "add_whole"),
    kernel(add_by_offsets),
    kernel(add_one_by_hand),
    kernel(matmul),
    kernel(matmul_rows_columns),
    kernel(scale),
    kernel(scale, "scale_pipelined"),
    kernel(scale_double_buffered),
    kernel(scale_on_every_core),
    kernel(softmax),
    kernel(transpose),
)
