"""A reader's file, loaded by its path, and the symbols in it.

The file is executed as an import would: in a package (folders with `__init__.py`) under its dotted
name, else under its own name with its folder first on `sys.path`, as `python file.py` would have
it. Its name may be that of a module of ours or of Python's; it replaces neither.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any


class LoadError(ValueError):
    """A file or symbol that cannot be tried; the message says which and why."""


@dataclass(frozen=True)
class Target:
    """FILE:SYMBOL, split."""

    path: Path
    symbol: str

    def __str__(self) -> str:
        return f"{self.path}:{self.symbol}"


def parse_target(text: str, what: str = "the kernel") -> Target:
    """Split `FILE:SYMBOL` and see that the file is there and parses, without executing it.

    Args:
      text: as typed.
      what: what it names, for the messages.

    Raises:
      LoadError: no colon, no such file, not Python, or no such name in the file.
    """
    path_text, colon, symbol = text.rpartition(":")
    if not colon or not symbol or not path_text:
        missing = "symbol" if not colon or not symbol else "file"
        raise LoadError(
            f"{what} is named as FILE:SYMBOL, e.g. my_kernels.py:add; {text!r} has no {missing}"
            + _functions_in(text.removesuffix(":"))
        )
    if not all(part.isidentifier() for part in symbol.split(".")):
        raise LoadError(f"{symbol!r} in {text!r} is not a Python name")
    path = Path(path_text).expanduser()
    if not path.exists():
        raise LoadError(f"there is no file {path_text}")
    if path.is_dir():
        raise LoadError(f"{path_text} is a folder; name a Python file in it")
    check_syntax(path)
    return Target(path.resolve(), symbol)


def check_syntax(path: Path) -> None:
    """Parse the file, without executing it.

    Raises:
      LoadError: it cannot be read, or is not Python.
    """
    try:
        source = path.read_bytes()
        compile(source, str(path), "exec", dont_inherit=True)
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from None
    except SyntaxError as error:
        line = (error.text or "").strip()
        at = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise LoadError(
            f"{at}: {type(error).__name__}: {error.msg}" + (f": {line}" if line else "")
        ) from None
    except ValueError as error:  # null bytes, an unknown encoding
        raise LoadError(f"{path} is not a Python file: {error}") from None


def load_file(path: Path) -> ModuleType:
    """Execute the file as a module.

    Whatever the file raises comes through as it is.
    """
    path = path.resolve()
    dotted = _dotted_name(path)
    if dotted is not None:
        name, root = dotted
        _put_first(root)
        _put_first(path.parent, after=root)
        if module := _same_file(name, path):
            return module
    else:
        _put_first(path.parent)
        name = path.stem
        if not name.isidentifier() or name in sys.modules or name in sys.stdlib_module_names:
            name = f"climbed_{''.join(c if c.isalnum() else '_' for c in path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:  # not a .py name
        from importlib.machinery import SourceFileLoader

        spec = importlib.util.spec_from_loader(name, SourceFileLoader(name, str(path)))
        assert spec is not None
        assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    previous = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if previous is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = previous
        raise
    return module


def own_files(path: Path) -> list[str]:
    """Return the file and what was imported from its folder, or from that of its package."""
    dotted = _dotted_name(path)
    root = path.parent if dotted is None else dotted[1]
    found = {str(path)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        place = Path(file)
        if place.is_relative_to(root) and "site-packages" not in place.relative_to(root).parts:
            found.add(file)
    return sorted(found)


def find_symbol(module: ModuleType, symbol: str) -> Callable[..., Any]:
    """Return the function `symbol` of `module`; dots reach into classes and instances.

    Raises:
      LoadError: there is no such name, or it is nothing that can be called.
    """
    found: Any = module
    path = Path(module.__file__ or module.__name__)
    for part in symbol.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise LoadError(f"{path.name} has no {symbol!r}{_near(module, symbol)}") from None
    if isinstance(found, type | ModuleType) or not callable(found):
        kind = "class" if isinstance(found, type) else type(found).__name__
        raise LoadError(
            f"{symbol!r} in {path.name} is {_article(kind)} {kind}, not a function; "
            "name a function that calls a Pallas kernel"
        )
    return found  # type: ignore[no-any-return]


def check_arguments_fit(
    function: Callable[..., Any],
    symbol: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """See that `function` can be called with these arguments, by position and by name.

    Raises:
      LoadError: it cannot; the message says what it takes.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # it does not tell
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        message = f"the arguments do not fit: {symbol} {_takes(signature, len(args), kwargs)}"
        names = list(signature.parameters)
        if names and all(name.endswith("ref") for name in names):
            message += f"; {symbol} looks like a kernel's body: name the function that calls it"
        raise LoadError(message) from None


def check_names_fit(function: Callable[..., Any], symbol: str, names: Sequence[str]) -> None:
    """See that `function` can be called with arguments of these names.

    Raises:
      LoadError: it cannot; the message says which names it has.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # it does not tell
        return
    if any(it.kind is it.VAR_KEYWORD for it in parameters):
        return
    there = [it.name for it in parameters if it.kind in (it.POSITIONAL_OR_KEYWORD, it.KEYWORD_ONLY)]
    for name in names:
        if name not in there:
            raise LoadError(
                f"{symbol} has no parameter {name} to sweep over; it has {', '.join(there)}"
            )


def _takes(signature: inspect.Signature, given: int, by_name: Mapping[str, Any]) -> str:
    """What a function takes, and why `given` arguments by position and these names are not that."""
    parameters = signature.parameters.values()
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    can_be_named = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    unknown = [name for name in by_name if name not in can_be_named]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        there = f"; it has {', '.join(can_be_named)}" if can_be_named else ""
        return f"has no parameter {unknown[0]}{there}"
    twice = [p.name for p in by_position[:given] if p.name in by_name]
    if twice and given <= len(by_position):
        others = ", ".join(p.name for p in by_position[:given] if p.name not in by_name)
        return (
            f"is given {twice[0]} twice, by position and by name: those given by position are its "
            f"first {given}" + (f"; give {others} by name, or leave one out" if others else "")
        )
    least, most = sum(p.default is p.empty for p in by_position), len(by_position)
    named = [
        p.name
        for p in parameters
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty and p.name not in by_name
    ]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if named and least <= given and (given <= most or any_number):
        how = ", ".join(f"{name}=…" for name in named)
        return (
            f"must be given {', '.join(named)} by name: write {how} at the end of the arguments, "
            "or give the file a cases() whose cases have .kwargs"
        )
    count = str(most) if least == most else f"{least} to {most}"
    if any_number:
        count = f"at least {least}"
    names = ", ".join(p.name if p.default is p.empty else f"{p.name}=…" for p in by_position)
    takes = f"takes {count} ({names})" if names else "takes none"
    return f"{takes}, and {given} {'is' if given == 1 else 'are'} given"


def _article(noun: str) -> str:
    return "an" if noun[:1] in "aeiou" else "a"


def _near(module: ModuleType, symbol: str) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type)
    ]
    own = [
        name for name in names if getattr(vars(module)[name], "__module__", "") == module.__name__
    ]
    close = difflib.get_close_matches(symbol, own or names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return _listed(own)


def _functions_in(path: str) -> str:
    """What the file at `path` defines, read and not executed; empty where that cannot be."""
    try:
        tree = ast.parse(Path(path).expanduser().read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return _listed([f.name for f in tree.body if isinstance(f, functions) and f.name[0] != "_"])


def _listed(functions: Sequence[str]) -> str:
    if not functions:
        return "; it defines no function"
    more = ", …" if len(functions) > 12 else ""
    return f"; its functions are {', '.join(functions[:12])}{more}"


def _dotted_name(path: Path) -> tuple[str, Path] | None:
    """The file's name within its package and the folder that holds the package, if it is in one."""
    if path.suffix != ".py" or not (path.parent / "__init__.py").exists():
        return None
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists() and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    return (".".join(parts), folder) if all(map(str.isidentifier, parts)) else None


def _same_file(name: str, path: Path) -> ModuleType | None:
    """Import `name` where that is this very file; None where it is another one.

    A package of another place with the same name (loaded already, or first on the path) is left
    alone; the file is then loaded by its path alone.
    """
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != path:
        return None
    return importlib.import_module(name)


def _put_first(folder: Path, after: Path | None = None) -> None:
    entry = str(folder)
    if entry in sys.path:
        return
    sys.path.insert(0 if after is None else 1, entry)
