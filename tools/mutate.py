"""Plants small faults in the kernels, one at a time, and asks their tests to notice.

Usage: mutate.py [MODULE...] [--output FILE]

A mutant is one kernel module with one fault: a comparison moved by one, a statement dropped, the
two indices of an index map swapped, a `where` that no longer selects. Each is tried in a process of
its own, on the rungs below the compiler with the first two cases of each of its kernels and on the
tests that import the module; the first test that fails kills it. Cases, the bounds of
their errors and texts of errors are not mutated: the first two are test data, a bound need not be
tight, and texts are matched by tests as a whole.

The module as it stands is tried first: tests that fail on it would kill everything, for nothing.
The mutants that no test kills are printed; those listed in tests/unit/kernels/survivors.toml, with
the reason, are counted apart. Exit status: 0 when at least nine in ten of the others are killed.
"""

import argparse
import ast
import contextlib
import copy
import functools
import importlib.abc
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "code/pallas_rungs/kernels"
TESTS = ROOT / "tests/unit/kernels"
SURVIVORS = TESTS / "survivors.toml"
OF_ALL_KERNELS = ("test_every_rung.py", "test_first_cases.py", "test_cases.py")
WANTED = 0.9
SECONDS = 180

NOT_KERNELS = {"__init__", "case", "catalogue"}
# What only tells the compiler how to schedule: no interpreter can see a change of it.
SKIPPED_KEYWORDS = {"compiler_params", "name", "cost_estimate"}

SLOW_TO_IMPORT = (
    "hypothesis",
    "jax._src.pallas.hlo_interpreter",
    "jax._src.pallas.mosaic.interpret.interpret_pallas_call",
    "jax._src.pallas.mosaic.lowering",
    "jax.experimental.mosaic.gpu",
    "jax.experimental.pallas.tpu",
    "pallas_rungs.ladder.rungs",
    "pytest",
)

# Nobody reads what a mutant's tests say, so nothing is prepared for it.
QUICKLY = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--assert=plain")

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
CALCULATED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Add, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One fault in one module.

    Attributes:
        module: The module's last name.
        line: Where the fault is.
        fault: What was changed, as `before → after`.
        source: The module with the fault.
        text: The line as it was.
    """

    module: str
    line: int
    fault: str
    source: str
    text: str = ""

    @property
    def key(self) -> str:
        """A name that outlives a change of line numbers."""
        return f"{self.module}: {self.fault} in {self.text}"


def faults(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yields replacements of one node; None drops a statement."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARED:
            yield ast.Compare(node.left, [COMPARED[type(operator)]()], node.comparators)
        case ast.BinOp(op=operator) if type(operator) in CALCULATED:
            yield ast.BinOp(node.left, CALCULATED[type(operator)](), node.right)
        case ast.AugAssign():
            yield ast.Assign([node.target], node.value, lineno=node.lineno)
            yield None
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.If():
            yield ast.If(ast.Constant(False), node.body, node.orelse)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield node.operand
        case ast.Call(func=ast.Attribute(attr="where"), args=[_, chosen, _]):
            yield chosen
        case ast.Call(func=ast.Attribute(attr="cdiv"), args=[whole, part]):
            yield ast.BinOp(whole, ast.FloorDiv(), part)
        case ast.Call(func=ast.Attribute(value=value, attr="astype")):
            yield value
        case ast.Lambda(body=ast.Tuple(elts=[first, second])):
            swapped = ast.Tuple([second, first], ast.Load())
            yield ast.Lambda(node.args, swapped)
        case ast.Assign(targets=[ast.Subscript()]):
            yield None
        case ast.Expr(value=ast.Call()):
            yield None


def unchanged(module: str) -> Mutant:
    """Returns a kernel module as it stands, in the form of a mutant."""
    return Mutant(module, 0, "unchanged", (KERNELS / f"{module}.py").read_text("utf-8"))


def mutants(module: str) -> Iterator[Mutant]:
    """Yields every mutant of a kernel module."""
    text = (KERNELS / f"{module}.py").read_text("utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    plain = ast.unparse(tree)
    for path in _places(tree, ()):
        before = _at(tree, path)
        for after in faults(before):
            changed = copy.deepcopy(tree)
            new = ast.Pass() if after is None else after
            _put(changed, path, ast.copy_location(new, before))
            fault = f"{_short(before)} → {_short(new)}"
            source = ast.unparse(ast.fix_missing_locations(changed))
            if source != plain:  # the two indices of (0, 0) may be swapped as often as one likes
                yield Mutant(module, before.lineno, fault, source, lines[before.lineno - 1].strip())


def _places(node: ast.AST, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yields the path of every node that may be changed."""
    for field, value in ast.iter_fields(node):
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _skipped(child, field):
                continue
            here = (*path, (field, place))
            if isinstance(child, ast.stmt | ast.expr):
                yield here
            yield from _places(child, here)


def _skipped(node: ast.AST, field: str) -> bool:
    match node:
        case ast.FunctionDef(name=name):
            return name == "cases" or name.endswith(("_cases", "_error_bound"))
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.keyword(arg=name):
            return name in SKIPPED_KEYWORDS
        case ast.Expr(value=ast.Constant()):
            return True
        case _:
            return field in ("annotation", "returns")


def _at(tree: ast.AST, path: tuple[Any, ...]) -> Any:
    node: Any = tree
    for field, place in path:
        node = getattr(node, field) if place is None else getattr(node, field)[place]
    return node


def _put(tree: ast.AST, path: tuple[Any, ...], new: ast.AST) -> None:
    *above, (field, place) = path
    parent = _at(tree, tuple(above))
    if place is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[place] = new


def _short(node: ast.AST) -> str:
    """The first line of a node's source."""
    text = ast.unparse(node).split("\n")
    return text[0] + (" …" if len(text) > 1 else "")


class _Planted(importlib.abc.MetaPathFinder):
    """Finds the mutant, in a file of its own, where its module is imported."""

    def __init__(self, mutant: Mutant, folder: str) -> None:
        self.name = f"pallas_rungs.kernels.{mutant.module}"
        self.file = Path(folder, f"{mutant.module}.py")
        self.file.write_text(mutant.source, "utf-8")

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.file)


def tests_of(module: str) -> list[str]:
    """Returns the tests of a kernel module: files that import it, some of those of all kernels."""
    files = [
        str(path)
        for path in sorted(TESTS.glob("test_*.py"))
        if path.name not in OF_ALL_KERNELS
        and f"pallas_rungs.kernels.{module} import" in path.read_text("utf-8")
    ]
    # The climbs first: a few seconds, in which most faults are noticed.
    return [*_of_each_module().get(module, []), *files] if files else []


@functools.cache
def _of_each_module() -> dict[str, list[str]]:
    """Returns each module's tests among those of all kernels.

    They are asked for in a child: the modules must stay unimported here.
    """
    told = subprocess.run(
        [sys.executable, "-c", _NAMES], capture_output=True, text=True, check=True
    ).stdout
    names: dict[str, list[str]] = json.loads(told)
    return {module: [f"{TESTS}/{name}" for name in some] for module, some in names.items()}


_NAMES = """
import collections, json
from pallas_rungs.kernels.catalogue import KERNELS
names = collections.defaultdict(list)
for kernel in KERNELS:
    names[kernel.call.__module__.rpartition(".")[2]].append(kernel.name)
first = "test_first_cases.py::test_the_"
tests = {
    module: [
        f"test_cases.py::test_a_call_is_for_the_chip_unless_told_otherwise[{module}]",
        *(
            f"{first}rung_is_content[{rung}-{kernel}-{number}]"
            for rung in ("interpret", "lower")
            for number in (0, 1)
            for kernel in kernels
        ),
        *(
            f"{first}simulator_is_content[{kernel}-{number}]"
            for number in (0, 1)
            for kernel in kernels
        ),
    ]
    for module, kernels in names.items()
}
print(json.dumps(tests))
"""


def killed(mutant: Mutant, tests: list[str]) -> bool:
    """Tries a mutant in a forked process; a test that fails or takes too long kills it."""
    child = os.fork()
    if child == 0:
        os._exit(_run(mutant, tests))
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run(mutant: Mutant, tests: list[str]) -> int:
    import hypothesis
    import pytest

    # The first example that fails is enough: nobody will read it, so it need not be made small.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases)
    hypothesis.settings.load_profile("mutants")
    with (
        tempfile.TemporaryDirectory(prefix="mutant-") as folder,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        sys.meta_path.insert(0, _Planted(mutant, folder))
        return int(pytest.main([*QUICKLY, *tests]))


def _import_what_is_slow(compiled: str) -> None:
    """Imports jax and hypothesis once; backends start in the children only.

    Args:
        compiled: A folder for what XLA compiles: most of a mutant's programs are the original's.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # tests/conftest.py would set these two too late, after the import.
    os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
    os.environ.setdefault("NPROC", "16")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled
    tempfile.tempdir = compiled  # a child that is killed cannot clear its own
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    for name in SLOW_TO_IMPORT:
        importlib.import_module(name)


def main() -> int:
    """Tries the mutants of the modules named, or of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--output", type=Path, help="write counts and survivors as JSON")
    options = parser.parse_args()
    known = tomllib.loads(SURVIVORS.read_text("utf-8")) if SURVIVORS.exists() else {}
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory(prefix="mutants-") as compiled:
        _import_what_is_slow(compiled)
        return _try_all(options, known)


def _try_all(options: argparse.Namespace, known: dict[str, str]) -> int:
    every = sorted(path.stem for path in KERNELS.glob("*.py") if path.stem not in NOT_KERNELS)
    told: dict[str, Any] = {}
    unheard: list[str] = []
    for module in options.modules or every:
        tests = tests_of(module)
        if not tests:
            print(f"{module}: no test imports it", file=sys.stderr)
            unheard.append(module)
            continue
        if killed(unchanged(module), tests):
            print(f"{module}: its tests fail as it stands; nothing can be learnt", file=sys.stderr)
            unheard.append(module)
            continue
        all_of_them = list(mutants(module))
        alive = [mutant for mutant in all_of_them if not killed(mutant, tests)]
        excused = [mutant for mutant in alive if mutant.key in known]
        told[module] = {
            "mutants": len(all_of_them),
            "killed": len(all_of_them) - len(alive),
            "survivors": {m.key: known.get(m.key, "") for m in alive},
        }
        print(f"{module}: {len(all_of_them) - len(alive)} of {len(all_of_them)} killed")
        for mutant in alive:
            reason = known.get(mutant.key)
            told_why = f" ({reason})" if reason else f" in {mutant.text}"
            print(f"  line {mutant.line}: {mutant.fault}{told_why}", flush=True)
        told[module]["excused"] = len(excused)
    total = sum(module["mutants"] - module["excused"] for module in told.values())
    dead = sum(module["killed"] for module in told.values())
    print(f"{dead} of {total} mutants killed, {100 * dead / max(total, 1):.1f} %")
    if options.output:
        options.output.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0 if dead >= WANTED * total and not unheard else 1


if __name__ == "__main__":
    sys.exit(main())
