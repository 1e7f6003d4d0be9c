"""What an executed chapter depends on: the code it reaches, versions, environment; and its key."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pallas_rungs
from pallas_rungs import extras
from pallas_rungs.book.notebooks import EXPECTS_STDERR, Chapter
from pallas_rungs.book.sources import parse
from pallas_rungs.walk import ExcerptError, installed_module

FORMAT = "2"
"""Version of the store; a change of it executes everything anew."""

VERSIONS = ("jax", "jaxlib", "libtpu", "numpy", "ipython", "ipykernel", "nbclient")
_ENVIRONMENT = re.compile(r"^(JAX|XLA|TPU|LIBTPU|PALLAS_RUNGS)_")
_NO_CONTENT = {
    "PALLAS_RUNGS_FRESH",
    "PALLAS_RUNGS_NO_CACHE",
    "PALLAS_RUNGS_JOBS",
    "PALLAS_RUNGS_CELL_SECONDS",
    "PALLAS_RUNGS_CLIMBS",
}
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def import_roots(code: Path) -> tuple[Path, ...]:
    """Return the folders whose modules count as the book's own: its ``code/`` and ours."""
    ours = Path(pallas_rungs.__file__).resolve().parents[1]
    return tuple(dict.fromkeys([code.resolve(), ours]))


def imported_names(tree: ast.AST, package: str = "") -> set[str]:
    """Return the dotted names that a tree imports, or names in a string such as ``-m`` takes.

    Args:
        tree: A parsed module or cell.
        package: The package around it, against which relative imports count.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, base] if base else parts)
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and _MODULE.fullmatch(node.value)
        ):
            names.add(node.value)
    return names


def module_files(name: str, roots: Iterable[Path]) -> set[Path]:
    """Return the files that importing a dotted name runs: each parent's ``__init__`` and it."""
    found: set[Path] = set()
    for root in roots:
        folder = root
        for part in name.split("."):
            if (folder / f"{part}.py").is_file():
                found.add(folder / f"{part}.py")
                break
            folder = folder / part
            if not folder.is_dir():
                break
            if (folder / "__init__.py").is_file():
                found.add(folder / "__init__.py")
    return found


@cache
def _imports_of(file: Path, stamp: tuple[int, int], package: str) -> frozenset[str]:
    return frozenset(imported_names(parse(file).tree, package))


class Lookups(dict[str, set[Path]]):
    """`module_files` of each name that was looked for, kept as long as no file comes or goes."""

    def __init__(self, roots: Iterable[Path]) -> None:
        super().__init__()
        self._roots = tuple(roots)

    def __missing__(self, name: str) -> set[Path]:
        """Look for a name the first time."""
        found = self[name] = module_files(name, self._roots)
        return found


def closure(
    files: Iterable[Path], roots: tuple[Path, ...], lookups: Lookups | None = None
) -> set[Path]:
    """Return these files and all that they import below the roots, transitively."""
    lookups = Lookups(roots) if lookups is None else lookups
    seen: set[Path] = set()
    todo = set(files)
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        root = next((root for root in roots if file.is_relative_to(root)), file.parent)
        package = ".".join(file.relative_to(root).with_suffix("").parts[:-1])
        stat = file.stat()
        try:
            names = _imports_of(file, (stat.st_mtime_ns, stat.st_size), package)
        except SyntaxError:
            continue  # its bytes still count; running it will name the error
        todo |= {found for name in names for found in lookups[name]} - seen
    return seen


def reached_files(
    chapter: Chapter, roots: tuple[Path, ...], lookups: Lookups | None = None
) -> set[Path]:
    """Return the files under ``code/`` that a chapter reaches by import or draws, and their data.

    A cell that is no plain Python (a magic) counts as reaching everything. A module's data are
    the files of other kinds in its folder, and in folders there that hold no module.
    """
    lookups = Lookups(roots) if lookups is None else lookups
    start = set(chapter.drawn_files)
    for cell in chapter.cells:
        try:
            names = imported_names(ast.parse(chapter.source(cell)))
        except SyntaxError:
            return {file for root in roots for file in _all_files(root)}
        start |= {file for name in names for file in lookups[name]}
    modules = closure(start, roots, lookups)
    data = {file for folder in {module.parent for module in modules} for file in _data(folder)}
    return modules | data


def _all_files(root: Path) -> set[Path]:
    return {f for f in root.rglob("*") if f.is_file() and not _derived(f.relative_to(root))}


def _derived(path: Path) -> bool:
    return any(p == "__pycache__" or p.startswith(".") or ".egg-info" in p for p in path.parts)


def _data(folder: Path) -> set[Path]:
    found: set[Path] = set()
    for entry in folder.iterdir():
        if _derived(Path(entry.name)):
            continue
        if entry.is_file() and entry.suffix != ".py":
            found.add(entry)
        elif entry.is_dir() and not any(entry.rglob("*.py")):
            found |= _all_files(entry)
    return found


def versions(of_extras: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions that shape outputs; ``none`` for what is not installed.

    Args:
        of_extras: The optional extras that count too.
    """
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    for name in of_extras:
        found[name] = "none" if extras.why_missing(name) else extras.version(name)
    return found


def chapter_key(
    chapter: Chapter,
    roots: tuple[Path, ...],
    environment: Mapping[str, str] = os.environ,
    lookups: Lookups | None = None,
) -> str:
    """Return the content key of a chapter: equal keys have equal outputs.

    Args:
        chapter: The chapter, drawn cells expanded.
        roots: The folders of the book's own code, see `import_roots`.
        environment: The variables that its kernel will see.
        lookups: Shared by chapters whose keys are made one after the other, while no file changes.
    """
    digest = hashlib.sha256()

    def add(*parts: str | bytes) -> None:
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            digest.update(len(data).to_bytes(8, "big") + data)

    add(FORMAT, *(f"{name}={at}" for name, at in versions(chapter.extras).items()))
    for name in sorted(environment):
        if _ENVIRONMENT.match(name) and name not in _NO_CONTENT:
            add(f"{name}={environment[name]}")
    for cell in chapter.cells:
        tags = chapter.notebook.cells[cell.index].metadata.get("tags", [])
        add(chapter.source(cell), str(EXPECTS_STDERR in tags))
    for module in sorted(chapter.passage_modules):
        try:
            add(module, installed_module(module).digest)
        except ExcerptError:
            add(module, "missing")  # the page's own excerpts of it name the error
    for file in sorted(reached_files(chapter, roots, lookups)):
        root = next((root for root in roots if file.is_relative_to(root)), file.parent)
        add(file.relative_to(root).as_posix(), file.read_bytes())
    return digest.hexdigest()
