"""The module of a Mosaic GPU kernel, read out of a lowered program.

`plgpu.kernel` lowers to one custom call that holds MLIR's bytecode: a host function that launches a
GPU program, written for one thread of it. TMA copies and tensor core instructions stand in it as
PTX, in `llvm.inline_asm`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
from jaxlib.mosaic.python import mosaic_gpu as dialect

from pallas_rungs.ir.calls import configuration, custom_calls_to, entry
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.operations import ByDialect, counted, walked

TARGET: Final = "mosaic_gpu_v2"
"""The target of the custom call that a kernel becomes."""

_DECODE: Final = "builtin.module(mosaic_gpu-serde{serialize=false})"
"""Undoes what was done for a stable file format."""


@dataclass(frozen=True)
class MosaicGPUModule(ByDialect):
    """A kernel as Mosaic GPU's compiler gets it.

    Attributes:
      name: of the function that launches it.
      arch: compute capability that it was lowered for, `(9, 0)`.
      blocks: of the launch, along x, y and z.
      threads: of a block, along x, y and z.
      shared_bytes: shared memory that a block is given at launch.
      operations: full name of an operation -> how often it stands in the module.
      inline_asm: the PTX of each `llvm.inline_asm`, whole -> how often it stands there.
      text: the module, printed.
    """

    name: str
    arch: tuple[int, int]
    blocks: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared_bytes: int
    operations: tuple[tuple[str, int], ...]
    inline_asm: tuple[tuple[str, int], ...]
    text: str

    def __str__(self) -> str:
        return (
            f"{self.name} for {self.arch[0]}.{self.arch[1]}: blocks {self.blocks}, "
            f"threads {self.threads}, {self.shared_bytes} bytes of shared memory\n"
            f"  operations: {self.dialects_text}"
        )

    def __repr__(self) -> str:
        return str(self)


def mosaic_gpu_modules(lowered: Any) -> tuple[MosaicGPUModule, ...]:
    """Read the module of each Mosaic GPU kernel in a program that was lowered for one, in order.

    Args:
      lowered: what `jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",))` gave.

    Raises:
      IRError: a custom call of a kernel is not as this reader knows it.
    """
    return tuple(decoded(call) for _, call in custom_calls_to(lowered, TARGET))


def decoded(call: Any) -> MosaicGPUModule:
    """Read the module out of a kernel's custom call.

    Raises:
      IRError: the call is not as this reader knows it.
    """
    module = entry(configuration(call, TARGET), "module", TARGET)
    return _decoded(ir.StringAttr(module).value_bytes)


def _decoded(bytecode: bytes) -> MosaicGPUModule:
    context = make_ir_context()
    dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        try:
            module = ir.Module.parse(bytecode)
            PassManager.parse(_DECODE).run(module.operation)
        except ir.MLIRError as error:
            raise IRError(f"the module of a {TARGET}", "MLIR bytecode", str(error)) from error
        return _read(module)


def _read(module: Any) -> MosaicGPUModule:
    launches = [op for op in walked(module.operation) if op.name == "gpu.launch"]
    if len(launches) != 1:
        raise IRError("a Mosaic GPU module", "one gpu.launch", f"{len(launches)} of them")
    (launch,) = launches
    # Operands: what must come before, the numbers of blocks and of threads, shared memory.
    sizes = [
        _constant(operand) for operand in launch.operands if not str(operand.type).startswith("!")
    ]
    if len(sizes) != 7:
        raise IRError("a gpu.launch", "six sizes and the shared memory", f"{sizes}")
    attributes = module.operation.attributes
    return MosaicGPUModule(
        name=ir.StringAttr(launch.parent.attributes["sym_name"]).value,
        arch=tuple(  # type: ignore[arg-type]  # a pair
            int(ir.IntegerAttr(attributes[f"mosaic_gpu.arch_{part}"]).value)
            for part in ("major", "minor")
        ),
        blocks=(sizes[0], sizes[1], sizes[2]),
        threads=(sizes[3], sizes[4], sizes[5]),
        shared_bytes=sizes[6],
        operations=counted(module),
        inline_asm=_inline_asm(module),
        text=module.operation.get_asm(enable_debug_info=False),
    )


def _constant(value: Any) -> int:
    made_by = value.owner
    if getattr(made_by, "name", "") != "arith.constant":
        raise IRError("a gpu.launch", "constants as sizes", str(value))
    return int(ir.IntegerAttr(made_by.attributes["value"]).value)


def _inline_asm(module: Any) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for operation in walked(module.operation):
        if operation.name == "llvm.inline_asm":
            counts[ir.StringAttr(operation.attributes["asm_string"]).value.strip()] += 1
    return tuple(sorted(counts.items()))
