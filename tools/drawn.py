"""Says which symbols of the package the chapters draw, and which of those no test reaches.

A chapter draws a symbol in a cell with an option line such as
`:source: kernels/add.py:add_kernel, add`.
"""

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

PACKAGE = "pallas_rungs"
IMPORTS = "imports"  # draws the file's import lines, no symbol
OPTION = re.compile(r"^:source:\s*(?P<targets>\S.*)$", re.M)


class Symbol(NamedTuple):
    """A function, class or constant at the top level of a module under code/pallas_rungs."""

    module: str  # "kernels/add.py"
    name: str

    def __str__(self) -> str:
        """Writes the symbol as a chapter does."""
        return f"{self.module}:{self.name}"


def drawn_by_chapters(root: Path) -> dict[Symbol, list[str]]:
    """Maps each drawn symbol to the chapters that draw it, as `book/start/x.md:line`."""
    drawn: dict[Symbol, list[str]] = {}
    for chapter in sorted((root / "book").rglob("*.md")):
        text = chapter.read_text("utf-8")
        for option in OPTION.finditer(text):
            line = text.count("\n", 0, option.start()) + 1
            module = ""
            for target in option["targets"].split(","):
                before, colon, name = target.strip().rpartition(":")
                module = before if colon else module
                if name == IMPORTS:
                    continue
                # `Class.method` is a part of Class.
                symbol = Symbol(module, name.partition(".")[0])
                drawn.setdefault(symbol, []).append(f"{chapter.relative_to(root)}:{line}")
    return drawn


def top_level(tree: ast.Module) -> dict[str, ast.stmt]:
    """Maps the names that a module defines at its top level to their statements."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            targets = [t for target in node.targets for t in getattr(target, "elts", [target])]
            found |= {t.id: node for t in targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def kernel_symbols(root: Path) -> list[Symbol]:
    """Lists the public functions of each kernel module: those that define `cases`."""
    symbols = []
    folder = root / "code" / PACKAGE / "kernels"
    for path in sorted(folder.glob("*.py")):
        names = top_level(ast.parse(path.read_text("utf-8")))
        if "cases" not in names:
            continue  # no kernel: what kernels are built from
        symbols += [
            Symbol(f"kernels/{path.name}", name)
            for name, node in names.items()
            if isinstance(node, ast.FunctionDef)
            and not name.startswith("_")
            and not f"_{name}".endswith("_cases")
        ]
    return symbols


def undrawn(root: Path) -> list[Symbol]:
    """Lists the symbols of kernels that no chapter draws."""
    drawn = drawn_by_chapters(root)
    return [symbol for symbol in kernel_symbols(root) if symbol not in drawn]


def names_in(node: ast.AST) -> set[str]:
    """Collects each name, attribute and text in a tree: all the ways to reach a symbol."""
    names: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                names.add(name.rpartition(".")[2])
            case ast.Constant(value=str(name)):
                names.add(name)
    return names


def listed_in(root: Path, package: str, name: str) -> set[str]:
    """Collects the modules that a package lists under a name, such as `bugs.MUSEUM`."""
    path = root / "code" / PACKAGE / package / "__init__.py"
    if not path.is_file():
        return set()
    listing = top_level(ast.parse(path.read_text("utf-8"))).get(name)
    value = getattr(listing, "value", None)
    return names_in(value) if isinstance(value, ast.Tuple | ast.List | ast.Dict) else set()


def modules_in(root: Path, tree: ast.Module) -> set[str]:
    """Collects the modules of ours that a test file imports, as `kernels/add.py`.

    A test that imports a package's list of modules, such as `MUSEUM`, goes through all of them; so
    does one that walks the files of a package by its `__path__`.
    """
    dotted: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "__path__":
            package = ast.unparse(node.value)
            folder = root / "code" / package.replace(".", "/")
            dotted |= {f"{package}.{path.stem}" for path in folder.glob("*.py")}
        if isinstance(node, ast.Import):
            dotted |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            dotted.add(node.module)
            dotted |= {f"{node.module}.{alias.name}" for alias in node.names}
            package = node.module.removeprefix(f"{PACKAGE}.")
            for alias in node.names:
                listed = listed_in(root, package, alias.name)
                dotted |= {f"{node.module}.{module}" for module in listed}
    prefix = f"{PACKAGE}."
    return {
        name.removeprefix(prefix).replace(".", "/") + ".py"
        for name in dotted
        if name.startswith(prefix)
    }


def imported(tree: ast.Module) -> dict[str, Symbol]:
    """Maps the names that a module imports from modules of ours to what they are there."""
    prefix = f"{PACKAGE}."
    return {
        alias.asname or alias.name: Symbol(
            node.module.removeprefix(prefix).replace(".", "/") + ".py", alias.name
        )
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(prefix)
        for alias in node.names
        if node.module
    }


def reached_by_tests(root: Path) -> set[Symbol]:
    """Collects the symbols that a test names, and those that they use, also in other modules.

    A test that names `add` reaches `add_kernel` too, because `add` passes it on.
    """
    named: dict[str, set[str]] = {}
    for path in sorted((root / "tests").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for module in modules_in(root, tree):
            named.setdefault(module, set()).update(names_in(tree))

    @functools.cache
    def contents(module: str) -> tuple[dict[str, ast.stmt], dict[str, Symbol]]:
        path = root / "code" / PACKAGE / module
        if not path.is_file():
            return {}, {}
        tree = ast.parse(path.read_text("utf-8"))
        return top_level(tree), imported(tree)

    todo = {Symbol(module, name) for module, names in named.items() for name in names}
    reached: set[Symbol] = set()
    while todo:
        symbol = todo.pop()
        defined, others = contents(symbol.module)
        if symbol in reached or symbol.name not in defined:
            continue
        reached.add(symbol)
        used = names_in(defined[symbol.name])
        todo |= {Symbol(symbol.module, name) for name in used & defined.keys()}
        todo |= {others[name] for name in used & others.keys()}
    return reached


def untested(root: Path) -> dict[Symbol, list[str]]:
    """Maps each drawn symbol that no test reaches to the chapters that draw it."""
    reached = reached_by_tests(root)
    return {s: where for s, where in drawn_by_chapters(root).items() if s not in reached}
