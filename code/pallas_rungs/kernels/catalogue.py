"""All kernels of the book in one table, for whoever tries them one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pallas_rungs.kernels import (
    add,
    add_by_offsets,
    axpy,
    layer_norm,
    matmul,
    matmul_gelu,
    matmul_rows_columns,
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
    """

    name: str
    call: Callable[..., Any]
    reference: Callable[..., Any]
    cases: Callable[[], tuple[Case, ...]]
    chips: tuple[str, ...]


def kernel(module: ModuleType, name: str | None = None) -> Kernel:
    """Return the kernel of a module that keeps to the names of this package.

    Args:
        module: Holds ``<name>``, ``<module>_reference``, ``cases`` and ``CHIPS``.
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
    )


KERNELS = (
    kernel(add),
    kernel(add, "add_whole"),
    kernel(add_by_offsets),
    kernel(axpy),
    kernel(layer_norm),
    kernel(matmul),
    kernel(matmul_gelu),
    kernel(matmul_rows_columns),
    kernel(softmax),
    kernel(transpose),
)
