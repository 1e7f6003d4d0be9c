"""The custom calls that kernels become, one kind for each compiler, and how much stands in them.

Whatever the compiler, a kernel leaves jax as one custom call that carries a module of its own as
MLIR bytecode. Only where it is kept differs: in JSON for Mosaic on a TPU, in a dictionary of
attributes for the two compilers for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mosaic.python import mosaic_gpu
from jaxlib.triton import dialect as triton

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.mosaic import TARGET, decoded
from pallas_rungs.ir.operations import by_dialect, counted, walked


@dataclass(frozen=True)
class CustomCall:
    """A kernel's custom call.

    Attributes:
      target: which compiler it is for.
      operations: full name of an operation of the kernel's module -> how often it stands there.
    """

    target: str
    operations: tuple[tuple[str, int], ...]

    @property
    def dialects(self) -> dict[str, int]:
        """Name of a dialect -> how many operations of it."""
        return by_dialect(self.operations)


def custom_calls(lowered: Any) -> tuple[CustomCall, ...]:
    """Read the custom call of each kernel in a lowered program, in order.

    Args:
      lowered: what `jax.jit(f).trace(*args).lower(…)` gave, for whatever platform.

    Raises:
      IRError: a kernel's custom call is not as this reader knows it.
    """
    module = lowered.compiler_ir("stablehlo")
    calls = (op for op in walked(module.operation) if op.name == "stablehlo.custom_call")
    named = ((ir.StringAttr(call.attributes["call_target_name"]).value, call) for call in calls)
    return tuple(CustomCall(name, _READERS[name](call)) for name, call in named if name in _READERS)


def operations(lowered: Any) -> dict[str, int]:
    """Count the operations of the lowered program itself, by full name."""
    return dict(counted(lowered.compiler_ir("stablehlo")))


def _for_tpu(call: Any) -> tuple[tuple[str, int], ...]:
    return decoded(ir.StringAttr(call.attributes["backend_config"]).value).operations


def _for_triton(call: Any) -> tuple[tuple[str, int], ...]:
    return _counted(_bytecode(call, "ir"), triton.register_dialect, "")


def _for_mosaic_gpu(call: Any) -> tuple[tuple[str, int], ...]:
    # Names of all dialects are stored behind one prefix, as the file format of this compiler.
    return _counted(_bytecode(call, "module"), mosaic_gpu.register_dialect, "stable_mosaic_gpu.")


def _bytecode(call: Any, key: str) -> bytes:
    config: Any = ir.DictAttr(call.attributes["mhlo.backend_config"])
    if key not in config:
        found = ", ".join(entry.name for entry in config) or "nothing"
        raise IRError("the backend_config of a kernel", f"an attribute {key}", found)
    code: bytes = ir.StringAttr(config[key]).value_bytes
    return code


def _counted(
    code: bytes, register: Callable[[Any], None], prefix: str
) -> tuple[tuple[str, int], ...]:
    context = make_ir_context()
    register(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    with context:
        try:
            module = ir.Module.parse(code)
        except ir.MLIRError as error:
            raise IRError("the module of a kernel", "MLIR bytecode", str(error)) from error
        return tuple((name.removeprefix(prefix), count) for name, count in counted(module))


_READERS: dict[str, Callable[[Any], tuple[tuple[str, int], ...]]] = {
    TARGET: _for_tpu,
    "__gpu$xla.gpu.triton": _for_triton,
    "mosaic_gpu_v2": _for_mosaic_gpu,
}
