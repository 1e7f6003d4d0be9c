"""The Mosaic module of a kernel, read out of a lowered program.

`pallas_call` lowers for a TPU to one custom call. Its `backend_config` is JSON, and in it, as
base64, stands MLIR's bytecode: the module that the compiler inside libtpu starts from. It is read
here with the MLIR bindings that jaxlib ships, so that no TPU and no libtpu is needed.

The module is read as it was serialised, before any pass of the compiler.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Final

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
from jaxlib.mosaic.python import tpu

from pallas_rungs.ir.calls import custom_calls_to
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.operations import ByDialect, counted

TARGET: Final = "tpu_custom_call"
"""The target of the custom call that a kernel becomes."""

GENERIC: Final = ("arith", "cf", "math", "memref", "scf", "vector")
"""MLIR's own dialects, as far as kernels are made of them. `tpu` is Mosaic's."""

_DECODE: Final = "builtin.module(mosaic-serde{serialize=false})"
"""Undoes what was done for a stable file format: renames the operations of all dialects back."""


@dataclass(frozen=True)
class Argument:
    """An argument of the kernel's function in the module.

    Attributes:
      role: `grid index`, `prefetched scalars`, `operand` or `scratch`.
      type: its MLIR type, as printed.
      space: its memory space, `vmem`; empty for a value that is in no memory.
    """

    role: str
    type: str
    space: str

    def __str__(self) -> str:
        return f"{self.role}: {self.type}"


@dataclass(frozen=True)
class Window:
    """How blocks of an operand come into the kernel.

    Attributes:
      bounds: shape of the block that is staged in or out for each program; None for an operand that
        is left where it is.
      transform: name of the function from the grid's indices to the block's; empty if there is no
        window.
      extra: what else is said, `pipeline_mode` and its kin: name -> text.
    """

    bounds: tuple[int, ...] | None
    transform: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def staged(self) -> bool:
        """Whether the compiler copies blocks for the kernel."""
        return self.bounds is not None

    def __str__(self) -> str:
        if self.bounds is None:
            return "no window: left where it is"
        extra = "".join(f", {name} {value}" for name, value in self.extra)
        return f"blocks of {self.bounds} at @{self.transform}{extra}"


@dataclass(frozen=True)
class MosaicModule(ByDialect):
    """A kernel as Mosaic's module.

    Attributes:
      name: of the kernel's function.
      grid: iteration bounds; empty for a kernel without a grid. A negative bound is dynamic.
      arguments: of the kernel's function: the grid's indices, scalars, operands, scratch.
      windows: one for each operand of a kernel with a grid.
      semantics: `parallel`, `arbitrary`, … for each axis of the grid.
      operations: full name of an operation -> how often it stands in the module.
      transforms: name of a transform function -> its MLIR.
      config: the rest of the custom call's configuration, without bytecode.
      text: the module, printed.
    """

    name: str
    grid: tuple[int, ...]
    arguments: tuple[Argument, ...]
    windows: tuple[Window, ...]
    semantics: tuple[str, ...]
    operations: tuple[tuple[str, int], ...]
    transforms: tuple[tuple[str, str], ...]
    config: tuple[tuple[str, str], ...]
    text: str

    def of_role(self, role: str) -> tuple[Argument, ...]:
        """The arguments of a role, in order."""
        return tuple(argument for argument in self.arguments if argument.role == role)

    @property
    def spaces(self) -> tuple[str, ...]:
        """The memory space of each operand."""
        return tuple(argument.space for argument in self.of_role("operand"))

    @property
    def vocabularies(self) -> tuple[int, int]:
        """How many operations are MLIR's own, and how many are the TPU's; functions aside."""
        found = self.dialects
        return sum(found.get(name, 0) for name in GENERIC), found.get("tpu", 0)

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.name}, grid {self.grid}, {', '.join(self.semantics) or 'no semantics'}",
                *(f"  {argument}" for argument in self.arguments),
                *(f"  operand {i}: {window}" for i, window in enumerate(self.windows)),
                f"  operations: {self.dialects_text}",
            ]
        )

    def __repr__(self) -> str:
        return str(self)


def mosaic_modules(lowered: Any) -> tuple[MosaicModule, ...]:
    """Read the Mosaic module of each kernel in a program that was lowered for a TPU, in order.

    Args:
      lowered: what `jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",))` gave.

    Raises:
      IRError: a custom call of a kernel is not as this reader knows it.
    """
    return tuple(
        decoded(ir.StringAttr(call.attributes["backend_config"]).value)
        for _, call in custom_calls_to(lowered, TARGET)
    )


def decoded(backend_config: str) -> MosaicModule:
    """Read the module out of the `backend_config` of a kernel's custom call.

    Raises:
      IRError: the configuration is no JSON, holds no bytecode, or bytecode of something else.
    """
    what = f"the backend_config of a {TARGET}"
    try:
        config = json.loads(backend_config)
        config |= config.pop("custom_call_config")
        body = base64.b64decode(config.pop("body"), validate=True)
    except json.JSONDecodeError as error:
        raise IRError(what, "JSON", f"{error.msg} at column {error.colno}", error.lineno) from error
    except (KeyError, TypeError) as error:
        raise IRError(what, "custom_call_config with a body", f"no {error}") from error
    except binascii.Error as error:
        raise IRError(what, "a body in base64", str(error)) from error
    config.pop("debug_locations", None)
    with _context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(body)
            PassManager.parse(_DECODE).run(module.operation)
        except ir.MLIRError as error:
            raise IRError(f"the body of a {TARGET}", "MLIR bytecode", str(error)) from error
        return _read(module, tuple((key, json.dumps(config[key])) for key in sorted(config)))


def parsed(text: str) -> MosaicModule:
    """Read a Mosaic module from its printed form.

    Raises:
      IRError: the text is no module of dialects that Mosaic knows, or not that of one kernel.
    """
    with _context():
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise IRError("a Mosaic module", "MLIR", str(error)) from error
        return _read(module, ())


def _context() -> Any:
    context = make_ir_context()
    tpu.register_dialect(context)
    context.load_all_available_dialects()
    return context


def _read(module: Any, config: tuple[tuple[str, str], ...]) -> MosaicModule:
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    kernels = [function for function in functions if "dimension_semantics" in function.attributes]
    if len(kernels) != 1:
        names = ", ".join(map(_symbol, functions)) or "none"
        raise IRError(
            "a Mosaic module", "one function with dimension_semantics", f"{len(kernels)} of {names}"
        )
    (kernel,) = kernels
    grid: tuple[int, ...] = ()
    windows: tuple[Window, ...] = ()
    if "iteration_bounds" in kernel.attributes:
        grid = tuple(ir.DenseI64ArrayAttr(kernel.attributes["iteration_bounds"]))
    if "window_params" in kernel.attributes:
        windows = tuple(map(_window, kernel.attributes["window_params"]))
    named = {window.transform for window in windows}
    return MosaicModule(
        name=_symbol(kernel),
        grid=grid,
        arguments=_arguments(kernel),
        windows=windows,
        semantics=tuple(map(_inside, kernel.attributes["dimension_semantics"])),
        operations=counted(module),
        transforms=tuple(
            (_symbol(function), function.get_asm())
            for function in functions
            if _symbol(function) in named
        ),
        config=config,
        text=module.operation.get_asm(),
    )


def _arguments(kernel: Any) -> tuple[Argument, ...]:
    values = list(kernel.regions[0].blocks[0].arguments)
    indices = len(kernel.attributes["dimension_semantics"])
    scalars = ir.IntegerAttr(kernel.attributes["scalar_prefetch"]).value
    scratch = ir.IntegerAttr(kernel.attributes["scratch_operands"]).value
    operands = len(values) - indices - scalars - scratch
    if operands < 0:
        raise IRError(
            f"the function {_symbol(kernel)}",
            f"at least {indices} indices, {scalars} scalars and {scratch} scratch arguments",
            f"{len(values)} arguments",
        )
    roles = ["grid index"] * indices + ["prefetched scalars"] * scalars
    roles += ["operand"] * operands + ["scratch"] * scratch
    return tuple(
        Argument(role, str(value.type), _space(value.type))
        for role, value in zip(roles, values, strict=True)
    )


def _space(type_: Any) -> str:
    if not isinstance(type_, ir.MemRefType) or type_.memory_space is None:
        return ""
    return _inside(type_.memory_space)


def _window(parameters: Any) -> Window:
    entries: Any = ir.DictAttr(parameters)
    names = {entry.name: entry.attr for entry in entries}
    if not names:
        return Window(None)
    missing = {"window_bounds", "transform_indices"} - set(names)
    if missing:
        raise IRError("window_params", " and ".join(sorted(missing)), str(parameters))
    bounds = tuple(ir.DenseI64ArrayAttr(names.pop("window_bounds")))
    transform = ir.FlatSymbolRefAttr(names.pop("transform_indices")).value
    extra = tuple((name, _inside(names[name])) for name in sorted(names))
    return Window(bounds, transform, extra)


def _symbol(function: Any) -> str:
    name: str = ir.StringAttr(function.attributes["sym_name"]).value
    return name


def _inside(attribute: Any) -> str:
    """The text between the angle brackets of an attribute, `vmem` of `#tpu.memory_space<vmem>`."""
    text = str(attribute)
    _, found, rest = text.partition("<")
    if not found or not rest.endswith(">"):
        raise IRError("an attribute of Mosaic", "#tpu.something<…>", text)
    return rest[:-1]
