"""Code that chapters draw: symbols cut out of a file by its syntax tree, comments included.

Only docstrings are shortened, to their summaries.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class DrawingError(ValueError):
    """A drawn cell that names no file, no symbol, or names that the chapter does not have."""


@dataclass(frozen=True)
class Line:
    """Where one line of a cell stands: a file, a line from 1, and the drawn symbol, if any."""

    file: Path
    number: int
    symbol: str = ""


@dataclass(frozen=True)
class Drawn:
    """One symbol cut out of a file.

    Attributes:
        file: The file on disk.
        shown: Its path as chapters write it, such as ``kernels/matmul.py``.
        symbol: ``matmul_kernel`` or ``Class.method``.
        text: The lines, dedented, docstrings shortened, without a last line break.
        lines: Where each line of ``text`` stands.
    """

    file: Path
    shown: str
    symbol: str
    text: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Module:
    """A parsed source file: text, lines, tree."""

    file: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.splitlines()


@cache
def _parse(file: Path, stamp: tuple[int, int]) -> Module:
    text = file.read_text("utf8")
    return Module(file, text, ast.parse(text, filename=str(file)))


def parse(file: Path) -> Module:
    """Parse a Python file; each version of it once."""
    stat = file.stat()
    return _parse(file, (stat.st_mtime_ns, stat.st_size))


def parse_option(option: str) -> list[tuple[str, str]]:
    """Split the text of a ``:source:`` option into (path, symbol) pairs.

    Args:
        option: ``kernels/a.py:x``, ``kernels/a.py:x, y`` or ``kernels/a.py:x, kernels/b.py:y``.

    Raises:
        DrawingError: A part names no file or no symbol.
    """
    pairs: list[tuple[str, str]] = []
    path = ""
    for part in option.split(","):
        before, colon, symbol = part.strip().rpartition(":")
        path = before.strip() if colon else path
        if not path or not symbol.strip():
            raise DrawingError(
                f"{part.strip()!r} names no file and symbol; write kernels/matmul.py:matmul_kernel"
            )
        pairs.append((path, symbol.strip()))
    return pairs


def draw(root: Path, option: str) -> list[Drawn]:
    """Cut the symbols of one ``:source:`` option out of their files.

    Args:
        root: The folder to which the option's paths are relative.
        option: The option's text, see `parse_option`.

    Raises:
        DrawingError: A file is not there or does not parse, or a symbol is not in it.
    """
    pairs = parse_option(option)
    drawn: list[Drawn] = []
    for path, symbol in pairs:
        file = root / path
        if not file.is_file():
            raise DrawingError(f"no file {path} to draw {symbol} from (looked in {root})")
        try:
            module = parse(file)
        except SyntaxError as error:
            raise DrawingError(f"{path} does not parse: {error}") from error
        drawn.append(_draw_symbol(module, path, symbol))
    return drawn


def _draw_symbol(module: Module, shown: str, symbol: str) -> Drawn:
    node = _find(module.tree, symbol.split("."))
    if node is None:
        raise DrawingError(f"no symbol {symbol} in {shown}")
    first, last = _span(module, node)
    kept = _with_short_docstrings(module, node, range(first, last + 1))
    text = textwrap.dedent("\n".join(kept.values()))
    lines = tuple(Line(module.file, number, symbol) for number in kept)
    return Drawn(module.file, shown, symbol, text, lines)


def _with_short_docstrings(module: Module, node: ast.stmt, numbers: range) -> dict[int, str]:
    """Return the lines of a symbol by number, its docstrings cut down to their summaries.

    What the prose around a drawn cell says about arguments, results and errors need not stand in
    the cell a second time; the caption links to the file, which has it all.
    """
    kept = {number: module.lines[number - 1] for number in numbers}
    for inner in ast.walk(node):
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if ast.get_docstring(inner, clean=False) is None:
            continue
        begin, end = inner.body[0].lineno, inner.body[0].end_lineno or inner.body[0].lineno
        blank = next((n for n in range(begin, end + 1) if not kept[n].strip()), None)
        if blank is not None:
            quotes = module.lines[end - 1].strip()[-3:]
            kept[blank - 1] += quotes
            for number in range(blank, end + 1):
                del kept[number]
    return kept


def _find(tree: ast.Module | ast.ClassDef, names: list[str]) -> ast.stmt | None:
    """Find the last definition of a dotted name, as the running module would."""
    found: ast.stmt | None = None
    for node in tree.body:
        if names[0] in bound_names(node):
            found = node
    if found is None or len(names) == 1:
        return found
    return _find(found, names[1:]) if isinstance(found, ast.ClassDef) else None


def _span(module: Module, node: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement, decorators and the comments right above included."""
    first = node.lineno
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        first = min([first, *(decorator.lineno for decorator in node.decorator_list)])
    lines = module.lines
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first, node.end_lineno or node.lineno


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds in its own scope, not inside functions or classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    names: set[str] = set()
    for child in _own_scope(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            names.add(child.id)
        elif isinstance(child, ast.stmt) and child is not node:
            names |= bound_names(child)
    return names


def _own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without going into functions, classes or lambdas."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        elif not isinstance(child, ast.Lambda):
            yield from _own_scope(child)


def free_names(text: str) -> set[str]:
    """Return the names that a piece of code takes from the module around it."""
    table = symtable.symtable(text, "<drawn>", "exec")
    bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    names = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    todo = list(table.get_children())
    while todo:
        inner = todo.pop()
        todo += inner.get_children()
        names |= {s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced()}
    return names - bound - set(dir(builtins))


def unmet_names(drawn: Drawn, defined: set[str]) -> set[str]:
    """Return the module-level names of its file that a drawn symbol uses and nobody defines.

    Args:
        drawn: The symbol.
        defined: The names that the chapter's cells define.
    """
    module = parse(drawn.file)
    here: set[str] = set()
    for node in module.tree.body:
        here |= bound_names(node)
    return (free_names(drawn.text) & here) - defined


def import_lines(drawn: Drawn, names: set[str], module_name: str) -> list[str]:
    """Return import statements that give a notebook names of a drawn symbol's file.

    What the file imports is imported in the same way; what it defines is imported from it.

    Args:
        drawn: The symbol whose file has the names.
        names: Module-level names of that file.
        module_name: The file's dotted name, such as ``pallas_rungs.kernels.matmul``.
    """
    statements: list[str] = []
    left = set(names)
    for node in parse(drawn.file).tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and left & bound_names(node):
            kept = [alias for alias in node.names if _alias_name(alias) in left]
            left -= {_alias_name(alias) for alias in kept}
            if isinstance(node, ast.Import):
                statements.append(ast.unparse(ast.Import(kept)))
            else:
                module = node.module or ""
                if node.level:
                    above = module_name.split(".")[: -node.level]
                    module = ".".join([*above, *filter(None, [module])])
                statements += _import_from(module, kept)
    own = [ast.alias(name) for name in sorted(left)]
    return statements + (_import_from(module_name, own) if own else [])


def _alias_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def _import_from(module: str, aliases: list[ast.alias]) -> list[str]:
    """Return one import statement, over several lines when it is long."""
    line = ast.unparse(ast.ImportFrom(module, aliases, 0))
    if len(line) <= 88:
        return [line]
    return [f"from {module} import (", *(f"    {ast.unparse(a)}," for a in aliases), ")"]
