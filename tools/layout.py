"""Says where the repository breaks its own rules of layout; each check returns complaints.

    python tools/layout.py

A check takes the folder to look at, so that the tests can try each on a small tree with a fault.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "pallas_rungs"

# Imports point down this list only. Within one row, packages do not know each other, but for the
# pairs in SIDEWAYS. Names are the packages and modules directly under code/pallas_rungs.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("book",),
    ("practice", "doctor", "museum"),
    ("ladder", "walk", "exhibits", "figures"),
    ("compilers", "ir", "performance"),
    ("bugs",),
    ("kernels", "claims", "bounds", "extras"),
)
SIDEWAYS: dict[tuple[str, str], str] = {
    ("performance", "compilers"): "an estimate is made of a program that a compiler dumped",
    ("performance", "ir"): "and of what the readers make of the dump",
}
# Arrows that point down in the list and are still not allowed.
FORBIDDEN = {
    ("figures", "compilers"): "a figure takes plain data",
    ("bugs", "claims"): "a bug knows nothing of the book",
}

VAGUE = {"util", "utils", "utilities", "helper", "helpers", "common", "misc", "stuff", "shared"}

TRACES = {
    # Character classes keep these patterns from matching the line they stand on. A made-up reader's
    # home folder may stand in tests.
    r"(?<![\w.])/(?:ro[o]t|ho[m]e/(?!reader/)\w+|Us[e]rs/\w+|wor[k]\w*)/": "a machine's path",
    r"[A-Z]:\\\\?Us[e]rs\\": "a machine's path",
    r"file[s]\.pythonhosted\.org|py[p]i\.org/simple": "a package index's host",
    r"registr[y]\.npmjs\.org|registr[y]\.yarnpkg\.com": "a package index's host",
}

COPIED_LINES = 8  # so many lines in a row, the same as upstream's, are no coincidence


def package_files(root: Path) -> Iterator[Path]:
    """Yields the package's Python files."""
    return iter(sorted((root / "code" / PACKAGE).rglob("*.py")))


def layer_of(name: str) -> int | None:
    """Returns the row of LAYERS that holds a package, or None."""
    return next((row for row, names in enumerate(LAYERS) if name in names), None)


def imported_names(tree: ast.Module, module: str) -> Iterator[tuple[int, str]]:
    """Yields line and dotted name of everything of ours that a module imports, however it does.

    Args:
        tree: The module's syntax tree.
        module: Its dotted name; a package's own name for `__init__.py`, with a trailing dot.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: -node.level]
                base = ".".join([*parents, *filter(None, [base])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2] in {"import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.lineno, node.args[0].value


def import_arrows(root: Path) -> list[str]:
    """Complains of each import that does not point down, and of packages outside the layers."""
    complaints = []
    for path in package_files(root):
        parts = path.relative_to(root / "code" / PACKAGE).with_suffix("").parts
        here = parts[0]
        if here == "__init__":
            continue
        place = path.relative_to(root)
        row = layer_of(here)
        if row is None:
            complaints.append(f"{place}: {here} has no layer; give it one in tools/layout.py")
            continue
        # For `pkg/__init__.py`, `from . import x` counts from pkg: keep __init__ as a last part.
        module = ".".join([PACKAGE, *parts])
        for line, name in imported_names(ast.parse(path.read_text("utf-8")), module):
            pieces = name.split(".")
            if pieces[0] != PACKAGE or len(pieces) < 2 or pieces[1] in {here, "__version__"}:
                continue
            target = pieces[1]
            target_row = layer_of(target)
            if target_row is None:
                why = f"{target} has no layer"
            elif (here, target) in FORBIDDEN:
                why = FORBIDDEN[here, target]
            elif (here, target) in SIDEWAYS or target_row > row:
                continue
            else:
                why = "imports point down only"
            complaints.append(f"{place}:{line}: {here} imports {target}: {why}")
    return complaints


def misplaced(root: Path) -> list[str]:
    """Complains of files and folders that break Python or every page by being where they are."""
    complaints = []
    if (root / "code" / "__init__.py").exists():
        complaints.append("code/__init__.py: shadows Python's own module `code`; remove it")
    for path in sorted((root / "code").glob("*.py")):
        if path.stem in sys.stdlib_module_names:
            complaints.append(f"code/{path.name}: shadows Python's own module `{path.stem}`")
    for folder in ("_static", "book/_static"):
        if (root / folder).exists():
            complaints.append(f"{folder}: every script and style in it lands on every page")
    for path in sorted((root / "book").rglob("*")):
        if path.is_file() and path.suffix not in {".md", ".bib"}:
            complaints.append(f"{path.relative_to(root)}: book/ holds text only")
    return complaints


def vague_names(root: Path) -> list[str]:
    """Complains of modules whose name says nothing of their one purpose."""
    paths = [
        *(root / "code").rglob("*"),
        *(root / "tools").rglob("*"),
        *(root / "exhibits").rglob("*"),
    ]
    return [
        f"{path.relative_to(root)}: the name says nothing; name the one purpose"
        for path in sorted(paths)
        if path.stem.strip("_").lower() in VAGUE and "node_modules" not in path.parts
    ]


def tracked_files(root: Path) -> list[Path]:
    """Lists the files that git holds; every file, where the folder is no checkout."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=True
        )
        found = [root / name for name in listed.stdout.split("\0") if name]
    else:
        found = sorted(root.rglob("*"))
    return [path for path in found if path.is_file()]


def text_of(path: Path) -> str | None:
    """Returns a file's text, or None for a binary file."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return None


def traces_of_a_machine(root: Path) -> list[str]:
    """Complains of text in git that names one machine's folders or a package index's host."""
    complaints = []
    for path in tracked_files(root):
        text = text_of(path)
        for number, line in enumerate((text or "").splitlines(), 1):
            for pattern, what in TRACES.items():
                if found := re.search(pattern, line):
                    place = f"{path.relative_to(root)}:{number}"
                    complaints.append(f"{place}: names {what}: {found.group(0)}")
    return complaints


def telling_lines(text: str) -> list[tuple[int, str]]:
    """Returns the lines of a text that carry something of their own, with their numbers."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [
        (number, line)
        for number, line in lines
        if len(line) > 3 and not line.startswith(("#", "import ", "from ", "@", '"""'))
    ]


def runs_of(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yields each run of COPIED_LINES telling lines, with the number of its first line."""
    lines = telling_lines(text)
    for start in range(len(lines) - COPIED_LINES + 1):
        piece = lines[start : start + COPIED_LINES]
        yield piece[0][0], tuple(line for _, line in piece)


def upstream_copies(root: Path, upstream: Iterable[Path]) -> list[str]:
    """Complains of text in git that is upstream's: excerpts are drawn, never copied.

    Args:
        root: The checkout.
        upstream: Installed source files to compare with.
    """
    known = {run: path for path in upstream for _, run in runs_of(text_of(path) or "")}
    complaints = []
    for path in tracked_files(root):
        if path.suffix not in {".py", ".md", ".js"}:
            continue
        first = next((n for n, run in runs_of(text_of(path) or "") if run in known), None)
        if first is not None:
            run = next(r for n, r in runs_of(text_of(path) or "") if n == first and r in known)
            complaints.append(
                f"{path.relative_to(root)}:{first}: {COPIED_LINES} lines copied from "
                f"{known[run].name}; draw them from the installed package instead"
            )
    return complaints


def main() -> int:
    """Prints every complaint about this checkout; returns 1 when there is one."""
    complaints = [
        complaint
        for check in (import_arrows, misplaced, vague_names, traces_of_a_machine)
        for complaint in check(ROOT)
    ]
    print("\n".join(complaints) or "layout: nothing to complain of")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
