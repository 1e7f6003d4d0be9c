"""The mutation check: which faults it plants, and that it tells a dead mutant from a living one."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import mutate
import pytest
from mutate import faults, mutants, unchanged


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("i < n", {"i <= n"}),
        ("k == 0", {"k != 0"}),
        ("a * b", {"a + b"}),
        ("128", {"129"}),
        ("True", {"False"}),
        ("-x", {"x"}),
        ("jnp.where(seen, x, 0)", {"x"}),
        ("pl.cdiv(M, bm)", {"M // bm"}),
        ("x.astype(jnp.float32)", {"x"}),
        ("lambda i, j: (i, j)", {"lambda i, j: (j, i)"}),
        ("name", set()),
    ],
)
def test_an_expression_has_these_faults(before: str, after: set[str]) -> None:
    node = ast.parse(before, mode="eval").body
    assert {ast.unparse(found) for found in faults(node) if found is not None} == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("o_ref[...] += x", {"o_ref[...] = x", None}),
        ("o_ref[...] = x", {None}),
        ("check(x)", {None}),
        ("if tail:\n    x = y", {"if False:\n    x = y"}),
        ("x = y", set()),
    ],
)
def test_a_statement_has_these_faults(before: str, after: set[str | None]) -> None:
    (node,) = ast.parse(before).body
    assert {found and ast.unparse(found) for found in faults(node)} == after


def test_cases_docstrings_and_errors_are_left_alone() -> None:
    found = list(mutants("matmul"))
    cases = unchanged("matmul").source.split("\n").index("def cases() -> tuple[Case, ...]:")
    assert all(0 < mutant.line <= cases for mutant in found)
    # A module of two kernels has a second list.
    lines = unchanged("silu").source.split("\n")
    second = lines.index("def silu_grad_cases() -> tuple[Case, ...]:")
    assert all(mutant.line <= second for mutant in mutants("silu"))
    assert any(mutant.fault == "pl.program_id(2) == 0 → pl.program_id(2) != 0" for mutant in found)
    assert not any("parallel" in mutant.fault for mutant in found)
    bounded = unchanged("flash_attention_forward").source.split("\n")
    bound = next(i for i, line in enumerate(bounded) if line.startswith("def forward_error_bound"))
    assert all(mutant.line <= bound for mutant in mutants("flash_attention_forward"))


def test_every_mutant_is_a_module_that_differs() -> None:
    plain = ast.unparse(ast.parse(unchanged("softmax").source))
    found = list(mutants("softmax"))
    assert len(found) > 10
    assert all(ast.unparse(ast.parse(mutant.source)) != plain for mutant in found)
    assert len({mutant.source for mutant in found}) == len(found)


PROGRAM = """
import sys
sys.path.insert(0, {tools!r})
import mutate
from mutate import Mutant, killed, unchanged

plain = unchanged("transpose")
broken = Mutant("transpose", 1, "swapped", plain.source.replace("(j, i)", "(i, j)"))
assert broken.source != plain.source
tests = mutate.tests_of("transpose")
assert tests
print(killed(plain, tests), killed(broken, tests))
"""


def test_a_fault_kills_and_the_module_as_it_stands_does_not(root: Path) -> None:
    program = PROGRAM.format(tools=str(root / "tools"))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_every_kernel_has_tests_to_kill_its_mutants() -> None:
    modules = {p.stem for p in mutate.KERNELS.glob("*.py")} - mutate.NOT_KERNELS
    assert {module for module in modules if not mutate.tests_of(module)} == set()


def test_every_excuse_is_for_a_mutant_that_there_is() -> None:
    excuses = tomllib.loads(mutate.SURVIVORS.read_text("utf-8"))
    assert excuses
    assert all(excuses.values())
    modules = {key.partition(":")[0] for key in excuses}
    there = {mutant.key for module in modules for mutant in mutate.mutants(module)}
    assert set(excuses) <= there
