"""All kernels of the book in one table, for whoever tries them one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, update_wrapper
from types import ModuleType
from typing import Any

from pallas_rungs.kernels import (
    add,
    add_by_offsets,
    flash_attention,
    flash_attention_backward,
    flash_attention_forward,
    logsumexp,
    matmul,
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


def kernel(module: ModuleType, name: str | None = None, **options: Any) -> Kernel:
    """Return the kernel of a module that keeps to the names of this package.

    Args:
        module: Holds ``<name>``, ``<module>_reference``, ``cases`` and ``CHIPS``.
        name: Name of the call; the module's own last name by default.
        **options: Keyword arguments for the call and its reference, to try another variant.

    Returns:
        The kernel.
    """
    own = module.__name__.rpartition(".")[2]
    told = [name or own, *(f"{option}={value}" for option, value in options.items())]
    call, reference = getattr(module, name or own), getattr(module, f"{own}_reference")
    return Kernel(
        name=" ".join(told),
        call=update_wrapper(partial(call, **options), call) if options else call,
        reference=partial(reference, **options),
        cases=module.cases,
        chips=module.CHIPS,
    )


KERNELS = (
    kernel(add),
    kernel(add, "add_whole"),
    kernel(add_by_offsets),
    kernel(flash_attention, "output_and_gradients", causal=True),
    kernel(flash_attention_backward),
    kernel(flash_attention_forward),
    kernel(flash_attention_forward, causal=True),
    kernel(logsumexp),
    kernel(matmul),
    kernel(matmul_rows_columns),
    kernel(softmax),
    kernel(transpose),
)
