"""All kernels of the book in one table, for whoever tries them one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, update_wrapper
from types import ModuleType
from typing import Any

from pallas_rungs.kernels import (
    add,
    add_by_offsets,
    add_one_by_hand,
    all_gather_ring,
    axpy,
    column_sums,
    flash_attention,
    flash_attention_backward,
    flash_attention_forward,
    flash_attention_strips,
    gather_blocks,
    grouped_matmul,
    layer_norm,
    logsumexp,
    matmul,
    matmul_gelu,
    matmul_int8,
    matmul_masked,
    matmul_rows_columns,
    matmul_scratch,
    matmul_serpentine,
    reduce_scatter_ring,
    right_permute,
    rms_norm,
    row_sums,
    scale,
    scale_double_buffered,
    scale_on_every_core,
    silu,
    softmax,
    softmax_with_gradient,
    transpose,
)
from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.ring import over_the_ring


@dataclass(frozen=True)
class Kernel:
    """A kernel's call with what it takes to try it.

    Attributes:
        name: The name of the call, with its options where there are some.
        call: The call, on the arguments of a case; it also takes ``interpret``.
        reference: The float64 result for the same arguments: an array or a pytree of arrays.
        cases: Returns the inputs to try.
        chips: The chips whose compiler accepts it, on every case.
        tool_cannot: Rungs whose tool cannot try it, and says so.
        devices: How many devices it runs on. Above 1, ``call`` takes what all of them hold, and
            runs only where jax has that many.
    """

    name: str
    call: Callable[..., Any]
    reference: Callable[..., Any]
    cases: Callable[[], tuple[Case, ...]]
    chips: tuple[str, ...]
    tool_cannot: tuple[str, ...] = ()
    devices: int = 1


def kernel(
    module: ModuleType, name: str | None = None, *, block: Any = None, **options: Any
) -> Kernel:
    """Return a kernel of a module that keeps to the names of this package.

    Args:
        module: Holds ``<name>``, ``<module>_reference``, ``cases`` and ``CHIPS``. A call that
            computes something else than the module's own, such as its gradient, has a
            ``<name>_reference`` and ``<name>_cases``. Two more constants where they apply:
            ``TOOL_CANNOT``, the rungs whose tool cannot try it, and ``DEVICES``, how many
            devices the ring has that it runs on.
        name: Name of the call; the module's own last name by default.
        block: Block sizes that the cases are made for, where those that the call takes by default
            are so large that a simulator is long at two of them.
        **options: Keyword arguments for the call and its reference, to try another variant.

    Returns:
        The kernel.
    """
    own = module.__name__.rpartition(".")[2]
    name = name or own
    call = getattr(module, name)
    reference = getattr(module, f"{name}_reference", None) or getattr(module, f"{own}_reference")
    devices: int = getattr(module, "DEVICES", 1)
    if options:
        call, reference = (
            update_wrapper(partial(call, **options), call),
            partial(reference, **options),
        )
    if block:
        call = update_wrapper(partial(call, block=block), call)
    return Kernel(
        name=" ".join([name, *(f"{option}={value}" for option, value in options.items())]),
        call=call if devices == 1 else over_the_ring(call, devices),
        reference=reference,
        cases=getattr(module, f"{name}_cases", module.cases),
        chips=module.CHIPS,
        tool_cannot=getattr(module, "TOOL_CANNOT", ()),
        devices=devices,
    )


KERNELS = (
    kernel(add),
    kernel(add, "add_whole"),
    kernel(add_by_offsets),
    kernel(add_one_by_hand),
    kernel(all_gather_ring),
    kernel(axpy),
    kernel(column_sums),
    kernel(flash_attention, "output_and_gradients", block=(128, 128), causal=True),
    kernel(flash_attention_backward, block=(128, 128)),
    kernel(flash_attention_forward, block=(128, 128)),
    kernel(flash_attention_forward, block=(128, 128), causal=True),
    kernel(flash_attention_strips, block=(256, 128)),
    kernel(gather_blocks),
    kernel(grouped_matmul),
    kernel(layer_norm),
    kernel(logsumexp),
    kernel(matmul),
    kernel(matmul_gelu),
    kernel(matmul_int8),
    kernel(matmul_masked),
    kernel(matmul_rows_columns),
    kernel(matmul_scratch),
    kernel(matmul_serpentine),
    kernel(matmul_serpentine, "matmul_serpentine_gelu"),
    kernel(reduce_scatter_ring),
    kernel(right_permute),
    kernel(rms_norm),
    kernel(row_sums),
    kernel(scale),
    kernel(scale, "scale_pipelined"),
    kernel(scale_double_buffered),
    kernel(scale_on_every_core),
    kernel(silu),
    kernel(silu, "silu_grad"),
    kernel(softmax),
    kernel(softmax_with_gradient),
    kernel(softmax_with_gradient, "softmax_grad"),
    kernel(transpose),
)
