"""All kernels of the book in one table, for whoever tries them one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pallas_rungs.kernels import (
    add,
    add_by_offsets,
    matmul,
    matmul_rows_columns,
    silu,
    softmax,
    softmax_with_gradient,
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
        module: Holds ``<name>``, ``<module>_reference``, ``cases`` and ``CHIPS``. A call that
            computes something else than the module's own, such as its gradient, has a
            ``<name>_reference`` and ``<name>_cases``.
        name: Name of the call; the module's own last name by default.

    Returns:
        The kernel.
    """
    own = module.__name__.rpartition(".")[2]
    name = name or own
    return Kernel(
        name=name,
        call=getattr(module, name),
        reference=getattr(module, f"{name}_reference", None) or getattr(module, f"{own}_reference"),
        cases=getattr(module, f"{name}_cases", module.cases),
        chips=module.CHIPS,
    )


KERNELS = (
    kernel(add),
    kernel(add, "add_whole"),
    kernel(add_by_offsets),
    kernel(matmul),
    kernel(matmul_rows_columns),
    kernel(silu),
    kernel(silu, "silu_grad"),
    kernel(softmax),
    kernel(softmax_with_gradient),
    kernel(softmax_with_gradient, "softmax_grad"),
    kernel(transpose),
)
