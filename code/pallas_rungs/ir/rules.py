"""Which primitives lower where: the rule tables of every Pallas compiler in the installed jax.

Each compiler keeps a dictionary from primitive to rule, and fills it while its modules are
imported. The tables here are read after every front end has been imported, so that what they say
does not depend on what was imported before.

A rule is Python that builds MLIR operations. In which dialects is read from its source by syntax
tree: a call `arith.addf(…)` in the rule, or in a function of the same module that it calls. Such
a list says what a rule *may* build. It leaves out what is built by way of other rules, and by
library classes that a rule uses.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, Final

from pallas_rungs.ir.errors import IRError

FRONT_ENDS: Final = (
    "jax.experimental.pallas.tpu",
    "jax.experimental.pallas.tpu_sc",
    "jax.experimental.pallas.triton",
    "jax.experimental.pallas.mosaic_gpu",
    "jax._src.pallas.fuser",
    "jax._src.pallas.mosaic.pallas_call_registration",
    "jax._src.pallas.mosaic.sc_lowering",
    "jax._src.pallas.triton.pallas_call_registration",
    "jax._src.pallas.mosaic_gpu.pallas_call_registration",
)
"""The public front ends, and the modules that register rules when a kernel is first lowered."""

_DIALECTS: Final = ".mlir.dialects."
_OTHER_HOMES: Final = {
    "jaxlib.mosaic.python.mosaic_gpu": "mosaic_gpu",
    "jaxlib.mosaic.python.tpu": "tpu",
    "jaxlib.triton.dialect": "tt",
}
"""Modules with the operations of a dialect that lie elsewhere."""

_BY_OTHER_RULES: Final = frozenset(
    {"jaxpr_subcomp", "lower_jaxpr_to_triton_ir", "lower_jaxpr_to_mosaic_gpu"}
)
"""Functions that lower a jaxpr, equation by equation: what they build, other rules build."""


@dataclass(frozen=True)
class Backend:
    """What a rule table is for.

    Attributes:
      name: as the table is called in the book.
      maker: `Mosaic`, `Triton` or `Mosaic GPU`.
    """

    name: str
    maker: str


TENSOR_CORE: Final = Backend("TPU TensorCore", "Mosaic")
SCALAR_SUBCORE: Final = Backend("SparseCore, scalar", "Mosaic")
VECTOR_SUBCORE: Final = Backend("SparseCore, vector", "Mosaic")
TRITON: Final = Backend("Triton", "Triton")
LANE: Final = Backend("Mosaic GPU, lane", "Mosaic GPU")
WARPGROUP: Final = Backend("Mosaic GPU, warpgroup", "Mosaic GPU")

BACKENDS: Final = (TENSOR_CORE, SCALAR_SUBCORE, VECTOR_SUBCORE, TRITON, LANE, WARPGROUP)


@dataclass(frozen=True)
class Rule:
    """What a compiler does with a primitive.

    Attributes:
      primitive: its name, with its module where a compiler has a primitive of the same name.
      function: module and name of the Python function.
      dialects: in which it may build operations, sorted; empty for a rule that builds none itself.
      delegates: it lowers a jaxpr, and so builds by other rules too.
    """

    primitive: str
    function: str
    dialects: tuple[str, ...]
    delegates: bool


@dataclass(frozen=True)
class RuleTables:
    """The tables of all compilers.

    Attributes:
      rules: backend -> name of a primitive -> its rule there.
    """

    rules: dict[Backend, dict[str, Rule]]

    def primitives(self, *backends: Backend) -> frozenset[str]:
        """The primitives that have a rule on all of these backends; on any, if none is given."""
        if not backends:
            return frozenset().union(*self.rules.values())
        return frozenset.intersection(*(frozenset(self.rules[backend]) for backend in backends))

    def only(self, backend: Backend) -> frozenset[str]:
        """The primitives that have a rule on this backend and not on one of another maker."""
        others = (table for b, table in self.rules.items() if b.maker != backend.maker)
        return self.primitives(backend).difference(*others)

    def dialects(self, backend: Backend) -> dict[str, int]:
        """Name of a dialect -> how many of a backend's rules may build operations of it."""
        counts: dict[str, int] = defaultdict(int)
        for rule in self.rules[backend].values():
            for dialect in rule.dialects:
                counts[dialect] += 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def __str__(self) -> str:
        return "\n".join(f"{b.name}: {len(table)} rules" for b, table in self.rules.items())


@functools.cache
def rule_tables() -> RuleTables:
    """Import every front end and read the tables.

    Raises:
      IRError: a table is not where the pinned version of jax keeps it.
    """
    for name in FRONT_ENDS:
        importlib.import_module(name)
    tables = _registries()
    names = _names({primitive for table in tables.values() for primitive in table})
    return RuleTables(
        {
            backend: {
                names[primitive]: _rule(names[primitive], function)
                for primitive, function in sorted(table.items(), key=lambda item: names[item[0]])
            }
            for backend, table in tables.items()
        }
    )


def _registries() -> dict[Backend, dict[Any, Callable[..., Any]]]:
    """The dictionaries themselves, primitive -> rule."""
    try:
        from jax._src.pallas.mosaic.core import CoreType
        from jax._src.pallas.mosaic.lowering import lowering_rules
        from jax._src.pallas.mosaic_gpu.core import LANExWG_SEMANTICS, WGxWG_SEMANTICS
        from jax._src.pallas.mosaic_gpu.lowering import mosaic_lowering_rules
        from jax._src.pallas.triton.lowering import triton_lowering_rules

        return {
            TENSOR_CORE: lowering_rules[CoreType.TC],
            SCALAR_SUBCORE: lowering_rules[CoreType.SC_SCALAR_SUBCORE],
            VECTOR_SUBCORE: lowering_rules[CoreType.SC_VECTOR_SUBCORE],
            TRITON: triton_lowering_rules,
            LANE: mosaic_lowering_rules[LANExWG_SEMANTICS],
            WARPGROUP: mosaic_lowering_rules[WGxWG_SEMANTICS],
        }
    except (ImportError, AttributeError, KeyError) as error:
        raise IRError(
            "the rule tables",
            "the registries of the pinned jax",
            f"{type(error).__name__}: {error}",
        ) from error


def _names(primitives: set[Any]) -> dict[Any, str]:
    """A name for each primitive, with the module for a compiler's own that shares its name."""
    by_name: dict[str, list[Any]] = defaultdict(list)
    for primitive in primitives:
        by_name[primitive.name].append(primitive)
    names = {}
    for name, same in by_name.items():
        for primitive in same:
            home = _home(primitive) if len(same) > 1 else ""
            names[primitive] = f"{name} ({home})" if "mosaic" in home else name
    if len(set(names.values())) < len(names):
        twice = sorted(n for n, same in by_name.items() if len(same) > 1)
        raise IRError("the rule tables", "names that tell primitives apart", ", ".join(twice))
    return names


def _home(primitive: Any) -> str:
    """The last two parts of the name of the module that holds a primitive, the longest such name.

    A primitive does not know where it was made; modules that pass it on have shorter names.
    """
    homes = [
        name
        for name, module in list(sys.modules.items())
        if name.startswith("jax._src.") and any(v is primitive for v in vars(module).values())
    ]
    if not homes:
        raise IRError("the rule tables", f"a module that defines {primitive.name}", "none")
    return ".".join(max(homes, key=lambda name: ("primitives" in name, len(name))).split(".")[-2:])


def _rule(primitive: str, function: Callable[..., Any]) -> Rule:
    plain = _unwrapped(function)
    dialects: set[str] = set()
    delegates = False
    for reached in _reached(plain):
        if reached.__name__ in _BY_OTHER_RULES:
            delegates = True
        else:
            dialects.update(_built(reached))
    return Rule(
        primitive, f"{plain.__module__}:{plain.__qualname__}", tuple(sorted(dialects)), delegates
    )


def _unwrapped(function: Any) -> FunctionType:
    while not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            raise IRError("the rule tables", "a Python function as a rule", repr(function))
    return function


def _reached(rule: FunctionType) -> Iterator[FunctionType]:
    """Yield a rule and the functions of its compiler that it calls, at any depth, each once."""
    folder = rule.__module__.rpartition(".")[0]
    waiting, seen = [rule], {rule}
    while waiting:
        function = waiting.pop()
        yield function
        if function.__name__ in _BY_OTHER_RULES:
            continue
        for called in _named(function):
            if called.__module__.rpartition(".")[0] == folder and called not in seen:
                seen.add(called)
                waiting.append(called)


@functools.cache
def _named(function: FunctionType) -> tuple[FunctionType, ...]:
    """The functions that a function calls, or hands on, by a name."""
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    values = [
        _meant(node, known)
        for node in ast.walk(_tree(function))
        if isinstance(node, ast.Name | ast.Attribute)
    ]
    named = [_unwrapped(v) for v in values if isinstance(v, functools.partial | FunctionType)]
    return tuple(dict.fromkeys(named))


@functools.cache
def _built(function: FunctionType) -> frozenset[str]:
    """The dialects of the operations that a function's own text builds."""
    found = set()
    for node in ast.walk(_tree(function)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            module = _meant(node.func.value, function.__globals__)
            if isinstance(module, ModuleType):
                found.add(_dialect(module, node.func.attr))
    return frozenset(found - {""})


def _meant(node: ast.AST, known: Mapping[str, Any]) -> Any:
    """What a name, or a name inside modules, stands for; None where that cannot be told."""
    match node:
        case ast.Name(id=name):
            return known.get(name)
        case ast.Attribute(value=inner, attr=name):
            module = _meant(inner, known)
            return getattr(module, name, None) if isinstance(module, ModuleType) else None
    return None


def _dialect(module: ModuleType, operation: str) -> str:
    """The dialect of an operation that a module has; empty where that is no module of a dialect."""
    name = module.__name__
    if _DIALECTS in name:
        return name.partition(_DIALECTS)[2].partition(".")[0]
    if name.endswith("_jax_mlir_ext") and operation == "arith_constant":
        return "arith"
    return _OTHER_HOMES.get(name, "")


@functools.cache
def _tree(function: FunctionType) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except SyntaxError:  # a lambda inside an expression
        return ast.Module([], [])
