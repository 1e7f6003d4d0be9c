"""The Triton IR of a kernel, read out of a lowered program.

`pallas_call` lowers for a GPU to one custom call that holds MLIR's bytecode. It is read here with
the bindings that jaxlib ships; no GPU, no plugin and no `triton` package is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.triton import dialect

from pallas_rungs.ir.calls import configuration, custom_calls_to, entry
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.operations import ByDialect, counted

TARGET: Final = "__gpu$xla.gpu.triton"
"""The target of the custom call that a kernel becomes."""


@dataclass(frozen=True)
class TritonKernel(ByDialect):
    """A kernel as Triton's compiler gets it.

    Attributes:
      name: of the kernel.
      grid: programs along x, y and z.
      num_warps: warps of 32 threads that share the work of one program.
      num_stages: how deep loops may be pipelined.
      operations: full name of an operation -> how often it stands in the module.
      text: the module, printed.
    """

    name: str
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    operations: tuple[tuple[str, int], ...]
    text: str

    def __str__(self) -> str:
        return (
            f"{self.name}, grid {self.grid}, {self.num_warps} warps, {self.num_stages} stages\n"
            f"  operations: {self.dialects_text}"
        )

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Access:
    """A load or a store of the module, with the places that it touches.

    Attributes:
      operation: `"load"` or `"store"`.
      argument: number of the kernel's argument that the pointers are in.
      offsets: int64, of the shape that is loaded: how many elements after the argument's first.
      mask: bool, of the same shape: which of them are touched; None where all are.
    """

    operation: str
    argument: int
    offsets: np.ndarray
    mask: np.ndarray | None


@dataclass(frozen=True)
class _Pointers:
    argument: int
    offsets: np.ndarray


def triton_kernels(lowered: Any) -> tuple[TritonKernel, ...]:
    """Read the Triton IR of each kernel in a program that was lowered for a GPU, in order.

    Args:
      lowered: what `jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",))` gave.

    Raises:
      IRError: a custom call of a kernel is not as this reader knows it.
    """
    return tuple(decoded(call) for _, call in custom_calls_to(lowered, TARGET))


def decoded(call: Any) -> TritonKernel:
    """Read a kernel out of its custom call.

    Raises:
      IRError: the call is not as this reader knows it.
    """
    said = configuration(call, TARGET)

    def number(name: str) -> int:
        return int(ir.IntegerAttr(entry(said, name, TARGET)).value)

    module = _parsed(ir.StringAttr(entry(said, "ir", TARGET)).value_bytes)
    return TritonKernel(
        name=ir.StringAttr(entry(said, "name", TARGET)).value,
        grid=(number("grid_x"), number("grid_y"), number("grid_z")),
        num_warps=number("num_warps"),
        num_stages=number("num_stages"),
        operations=counted(module),
        text=module.operation.get_asm(enable_debug_info=False),
    )


def accesses(text: str, program: tuple[int, int, int] = (0, 0, 0)) -> tuple[Access, ...]:
    """Compute which elements a program loads and stores, from its pointer arithmetic.

    The integers of the module are evaluated; what is loaded is not, so that pointers which depend
    on loaded values, or on the variable of a loop, are out of reach.

    Args:
      text: a module of Triton IR.
      program: ids of the program along x, y and z.

    Returns:
      The loads and stores of the kernel's body, in order; those inside of loops are not looked at.

    Raises:
      IRError: the text is no module with one function, or the pointers of an access are not made
        of constants, ranges and the program's ids.
    """
    module = _parsed(text)
    functions = [op.operation for op in module.body.operations if op.operation.name == "tt.func"]
    if len(functions) != 1:
        raise IRError("a module of Triton IR", "one tt.func", f"{len(functions)} of them")
    block = functions[0].regions[0].blocks[0]
    values: dict[Any, Any] = {
        argument: _Pointers(number, np.zeros((), np.int64))
        for number, argument in enumerate(block.arguments)
    }
    found = []
    for inner in block.operations:
        operation = inner.operation
        if operation.name in ("tt.load", "tt.store"):
            found.append(_access(operation, values))
        elif operation.name == "tt.get_program_id":
            values[operation.results[0]] = np.int64(program[_number(operation, "axis")])
        elif (rule := _RULES.get(operation.name)) is not None:
            operands = [values.get(operand) for operand in operation.operands]
            if all(operand is not None for operand in operands):
                values[operation.results[0]] = rule(operation, *operands)
    return tuple(found)


def _access(operation: Any, values: dict[Any, Any]) -> Access:
    name = operation.name.removeprefix("tt.")
    pointers = values.get(operation.operands[0])
    if pointers is None:
        raise IRError(
            "a module of Triton IR",
            f"pointers of a {name} that are made of constants, ranges and program ids",
            str(operation),
        )
    masks = operation.operands[1 if name == "load" else 2 :]
    mask = values.get(masks[0]) if len(masks) else None
    return Access(name, pointers.argument, pointers.offsets, mask)


def _parsed(module: str | bytes) -> Any:
    context = make_ir_context()
    dialect.register_dialect(context)
    with context, ir.Location.unknown():
        try:
            return ir.Module.parse(module)
        except ir.MLIRError as error:
            raise IRError("a module of Triton IR", "MLIR", str(error)) from error


def _number(operation: Any, attribute: str) -> int:
    return int(ir.IntegerAttr(operation.attributes[attribute]).value)


def _shape(operation: Any) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(operation.results[0].type).shape)


def _constant(operation: Any) -> Any:
    value = operation.attributes["value"]
    return np.int64(value.value) if isinstance(value, ir.IntegerAttr) else None


def _broadcast(operation: Any, operand: Any) -> Any:
    if isinstance(operand, _Pointers):
        shape = _shape(operation)
        return _Pointers(operand.argument, np.broadcast_to(operand.offsets, shape))
    return np.broadcast_to(operand, _shape(operation))


def _range(operation: Any) -> Any:
    return np.arange(_number(operation, "start"), _number(operation, "end"), dtype=np.int64)


def _add_pointers(operation: Any, pointers: _Pointers, offsets: Any) -> _Pointers:
    del operation
    return _Pointers(pointers.argument, pointers.offsets + offsets)


_COMPARISONS: Final[dict[int, Callable[[Any, Any], Any]]] = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    3: np.less_equal,
    4: np.greater,
    5: np.greater_equal,
    # The unsigned ones; offsets are not negative.
    6: np.less,
    7: np.less_equal,
    8: np.greater,
    9: np.greater_equal,
}

_RULES: Final[dict[str, Callable[..., Any]]] = {
    "arith.constant": _constant,
    "arith.addi": lambda _, x, y: x + y,
    "arith.subi": lambda _, x, y: x - y,
    "arith.muli": lambda _, x, y: x * y,
    "arith.andi": lambda _, x, y: x & y,
    "arith.cmpi": lambda op, x, y: _COMPARISONS[_number(op, "predicate")](x, y),
    "arith.extsi": lambda _, x: x,
    "arith.index_cast": lambda _, x: x,
    "tt.splat": _broadcast,
    "tt.broadcast": _broadcast,
    "tt.make_range": _range,
    "tt.expand_dims": lambda op, x: np.expand_dims(x, _number(op, "axis")),
    "tt.addptr": _add_pointers,
}
