"""Loading by path, in this process: targets, symbols, packages, names that clash."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pallas_rungs.ladder.loading import (
    LoadError,
    check_arguments_fit,
    find_symbol,
    load_file,
    own_files,
    parse_target,
)


@pytest.fixture(autouse=True)
def _own_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(
        "import helper_beside\nCONSTANT = 1\nclass Kernel:\n    def __call__(self, x): return x\n"
        "kernel = Kernel()\ndef add(x, y): return x + y\ndef body(x_ref, o_ref): pass\n"
    )
    (tmp_path / "helper_beside.py").write_text("")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file.py", "'file.py' has no symbol"),
        ("file.py:", "has no symbol"),
        (":f", "has no file"),
        ("mine.py:1f", "not a Python name"),
        ("nowhere.py:f", "there is no file nowhere.py"),
        (".:f", "is a folder"),
    ],
)
def test_a_target_that_is_none(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse_target(text)


@pytest.mark.parametrize(
    ("source", "message"),
    [(b"def f(:", "SyntaxError"), (b"a = 1\0", "null bytes"), (b"# coding: nope\n", "nope")],
)
def test_a_file_that_is_not_python(tmp_path: Path, source: bytes, message: str) -> None:
    (tmp_path / "bad.py").write_bytes(source)
    with pytest.raises(LoadError, match=rf"bad\.py.*{message}"):
        parse_target(f"{tmp_path}/bad.py:f")


def test_a_file_finds_what_is_beside_it(file: Path) -> None:
    target = parse_target(f"{file}:add")
    assert (target.path, target.symbol) == (file, "add")
    module = load_file(file)
    assert module.__name__ == "mine"
    assert sys.path[0] == str(file.parent)
    assert find_symbol(module, "add")(1, 2) == 3
    assert find_symbol(module, "kernel")(7) == 7


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("ad", "did you mean 'add'"),
        ("zzzzz", "its functions are kernel, add, body"),
        ("CONSTANT", "is an int, not a function"),
        ("Kernel", "is a class, not a function"),
        ("helper_beside", "is a module, not a function"),
    ],
)
def test_a_symbol_that_is_no_function(file: Path, symbol: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        find_symbol(load_file(file), symbol)


def test_arguments_must_fit(file: Path) -> None:
    module = load_file(file)
    check_arguments_fit(module.add, "add", (1, 2))
    with pytest.raises(LoadError, match=r"add takes 2 \(x, y\), and 1 is given"):
        check_arguments_fit(module.add, "add", (1,))
    with pytest.raises(LoadError, match="looks like a kernel's body"):
        check_arguments_fit(module.body, "body", (1,))


def _optional(x, alpha=1): ...


def _by_name(x, *, block, axis): ...


def _any_number(x, *more): ...


def _none(): ...


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (_optional, 0, r"f takes 1 to 2 \(x, alpha=…\), and 0 are given"),
        (_optional, 3, r"f takes 1 to 2 \(x, alpha=…\), and 3 are given"),
        (_by_name, 1, "f must be given block, axis by name"),
        (_by_name, 2, r"f takes 1 \(x\), and 2 are given"),
        (_any_number, 0, r"f takes at least 1 \(x\), and 0 are given"),
        (_none, 1, "f takes none, and 1 is given"),
    ],
)
def test_what_a_function_takes_is_said(
    function: Callable[..., None], given: int, message: str
) -> None:
    with pytest.raises(LoadError, match=message):
        check_arguments_fit(function, "f", (0,) * given)


def test_arguments_by_name_must_be_parameters() -> None:
    check_arguments_fit(_by_name, "f", (0,), {"block": 1, "axis": 2})
    with pytest.raises(LoadError, match="f must be given axis by name: write axis=…"):
        check_arguments_fit(_by_name, "f", (0,), {"block": 1})
    with pytest.raises(LoadError, match="f has no parameter blocks; it has x, block, axis"):
        check_arguments_fit(_by_name, "f", (0,), {"blocks": 1, "axis": 2})


def test_a_files_own_modules_are_known_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("FACTOR = 2\n")
    (tmp_path / "imports_it.py").write_text("import json\nfrom beside_it import FACTOR\n")
    load_file(tmp_path / "imports_it.py")
    names = [Path(file).name for file in own_files(tmp_path / "imports_it.py")]
    assert names == ["beside_it.py", "imports_it.py"]


def test_a_file_named_alone_says_its_functions_and_is_not_executed(file: Path) -> None:
    file.write_text(file.read_text() + "def _own(): pass\nraise RuntimeError\n")
    for text in (f"{file}", f"{file}:"):
        with pytest.raises(LoadError, match=r"has no symbol; its functions are add, body$"):
            parse_target(text)


@pytest.mark.parametrize("name", ["random.py", "pytest.py", "two words.py", "no_suffix"])
def test_a_name_that_is_taken_or_odd_replaces_nothing(tmp_path: Path, name: str) -> None:
    before = sys.modules.get(Path(name).stem)
    (tmp_path / name).write_text("def f(): return 'mine'\n")
    module = load_file(tmp_path / name)
    assert module.f() == "mine"
    assert sys.modules[module.__name__] is module
    if before is not None:
        assert sys.modules[Path(name).stem] is before
    assert random.random() < 1


def test_a_file_in_a_package_may_import_relatively(tmp_path: Path) -> None:
    inner = tmp_path / "shelf" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "shelf" / "__init__.py").write_text("")
    (inner / "__init__.py").write_text("")
    (tmp_path / "shelf" / "factors.py").write_text("FACTOR = 2\n")
    (inner / "deep.py").write_text("from ..factors import FACTOR\ndef f(): return FACTOR\n")
    module = load_file(inner / "deep.py")
    assert module.__name__ == "shelf.inner.deep"
    assert module.f() == 2
    assert load_file(inner / "deep.py") is module


def test_a_file_that_fails_leaves_no_module(tmp_path: Path) -> None:
    (tmp_path / "halfway.py").write_text("x = 1\nraise RuntimeError('no')\n")
    with pytest.raises(RuntimeError, match="no"):
        load_file(tmp_path / "halfway.py")
    assert "halfway" not in sys.modules
