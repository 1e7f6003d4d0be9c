"""The hash of a function's code, by which a record knows that its kernel has changed.

It covers the modules of this book that the function comes from, and those that they import; of a
function from elsewhere, such as a cell of a notebook, its own source and what of ours it names.
Comments, docstrings and layout do not count: they change no figure.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

PACKAGE: Final = "pallas_rungs"
_LENGTH: Final = 32
_NO_FILE: Final = "<string>"
"""What Python calls the file of code that was made of a string."""
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


class SourcesError(ValueError):
    """A function whose code cannot be read; the message names it."""


def code_hash(*functions: Callable[..., Any], given: object = "") -> str:
    """Return the hash of the code of functions.

    Args:
      *functions: functions, jitted or partial ones among them, or modules' calls of kernels.
      given: what else decides what they do, such as a configuration; its `repr` is hashed.

    Raises:
      SourcesError: the source of one cannot be read.
    """
    parts: dict[str, str] = {}
    for function in functions:
        parts.update(_parts_of(function, frozenset()))
    text = f"{sorted(parts.items())!r} {_spelled(given)}"
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def covered_modules(*functions: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of this book's modules that the hash of functions covers."""
    found: dict[str, str] = {}
    for function in functions:
        found.update(_parts_of(function, frozenset()))
    return tuple(sorted(name for name in found if not name.startswith("<")))


def _parts_of(function: Any, seen: frozenset[int]) -> dict[str, str]:
    """Name -> code without comments, of everything that a function hangs on."""
    if id(function) in seen:
        return {}
    seen |= {id(function)}
    if isinstance(function, partial):
        given = _spelled((function.args, sorted(function.keywords.items())))
        name = getattr(function.func, "__qualname__", type(function.func).__name__)
        return {**_parts_of(function.func, seen), f"<given to {name}>": given}
    function = inspect.unwrap(function)
    module = getattr(function, "__module__", None)
    if module and module.partition(".")[0] == PACKAGE:
        return dict(_modules(module))
    if not isinstance(function, FunctionType):
        raise SourcesError(f"the code of {function!r} cannot be read: it is no Python function")
    if function.__code__.co_filename == _NO_FILE:  # Python may still show other code of that name
        raise SourcesError(
            f"the source of {function.__qualname__} is not at hand: it is of no file"
        )
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise SourcesError(f"the source of {function.__qualname__} is not at hand") from error
    found = {f"<{function.__qualname__}>": _bare(source)}
    for value in _named_by(function):
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] == PACKAGE:
                found.update(_modules(value.__name__))
        elif callable(value) and _is_code(value):
            found.update(_parts_of(value, seen))
        elif isinstance(value, str | int | float | bool | tuple):
            found[f"<value {_spelled(value)}>"] = ""
    return found


def _spelled(value: Any) -> str:
    """A value as text that is the same in every process."""
    return _ADDRESS.sub("", repr(value))


def _is_code(value: Any) -> bool:
    """Whether a value is a function of ours, or of no module that can be imported."""
    value = inspect.unwrap(value.func if isinstance(value, partial) else value)
    module = str(getattr(value, "__module__", ""))
    ours = module.partition(".")[0] == PACKAGE
    return ours or (isinstance(value, FunctionType) and module == "__main__")


def _named_by(function: FunctionType) -> Iterator[Any]:
    """The values that a function's code names, of its module and of the functions around it."""
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in function.__globals__:
                yield function.__globals__[name]
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _modules(name: str) -> Iterator[tuple[str, str]]:
    """A module of ours and those that it imports: name and code, each once."""
    waiting, seen = [name], set[str]()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        source = _file_of(here).read_text("utf-8")
        yield here, _bare(source)
        waiting += sorted(_imported(ast.parse(source), here))


def _file_of(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SourcesError(f"the module {name} has no file")
    return Path(spec.origin)


def _imported(tree: ast.AST, here: str) -> set[str]:
    """The modules of ours that a module's text imports; no package for the sake of its modules."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in members if _is_module(name)}
            names |= modules or {node.module}
    return {name for name in names if name.partition(".")[0] == PACKAGE and name != here}


def _is_module(name: str) -> bool:
    if name.partition(".")[0] != PACKAGE:
        return False
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _bare(source: str) -> str:
    """Code as its syntax tree, docstrings left out."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a lambda in the middle of a call: its line as it stands
        return " ".join(source.split())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and body:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = body[1:] or [ast.Pass()]
    return _tree_as_text(tree)


def _tree_as_text(node: Any) -> str:
    """A syntax tree as text: the same in every version of Python, so without what is empty."""
    if isinstance(node, list):
        return f"[{', '.join(map(_tree_as_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = (f"{n}={_tree_as_text(v)}" for n, v in ast.iter_fields(node) if v not in (None, []))
    return f"{type(node).__name__}({', '.join(fields)})"
