"""The hash of a function's code sees what it hangs on, and nothing else."""

from __future__ import annotations

import importlib
import linecache
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import pytest

from pallas_rungs.kernels import flash_attention_forward, matmul_scratch
from pallas_rungs.performance import rivals, sources
from pallas_rungs.performance.sources import SourcesError, code_hash, covered_modules


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package of two modules that counts as the book's own; gives a function that writes one."""
    folder = tmp_path / "small_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("NEVER = 'counted'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sources, "PACKAGE", "small_package")

    def write(**modules: str) -> ModuleType:
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.startswith("small_package")]:
            monkeypatch.delitem(sys.modules, name)
        importlib.invalidate_caches()
        linecache.checkcache()
        return importlib.import_module("small_package.kernel")

    return write


KERNEL = "from small_package.other import LIMIT\n\n\ndef call(x):\n    return x + LIMIT\n"
OTHER = "LIMIT = 3\n"


def test_a_change_of_what_is_imported_changes_the_hash(planted: Any) -> None:
    first = code_hash(planted(kernel=KERNEL, other=OTHER).call)
    assert code_hash(planted(kernel=KERNEL, other=OTHER).call) == first
    assert code_hash(planted(kernel=KERNEL, other="LIMIT = 4\n").call) != first
    assert code_hash(planted(kernel=KERNEL.replace("+", "-"), other=OTHER).call) != first


def test_comments_and_docstrings_change_nothing(planted: Any) -> None:
    first = code_hash(planted(kernel=KERNEL, other=OTHER).call)
    told = KERNEL.replace("    return", '    """Add the limit."""\n    # at once\n    return')
    assert code_hash(planted(kernel=told, other=f'"""Limits."""\n\n{OTHER}').call) == first


def test_a_configuration_counts(planted: Any) -> None:
    call = planted(kernel=KERNEL, other=OTHER).call
    hashes = {
        code_hash(call),
        code_hash(call, given={"block": (1, 2)}),
        code_hash(call, given={"block": (2, 2)}),
        code_hash(partial(call, 1)),
        code_hash(partial(call, 2)),
    }
    assert len(hashes) == 5


def test_a_wrapped_function_is_the_function() -> None:
    call = rivals.matmul
    assert code_hash(jax.jit(call)) == code_hash(call)


def test_a_kernel_is_covered_with_what_it_imports_and_no_more() -> None:
    assert covered_modules(flash_attention_forward.flash_attention_forward) == (
        "pallas_rungs.kernels.case",
        "pallas_rungs.kernels.checks",
        "pallas_rungs.kernels.flash_attention_forward",
    )
    assert covered_modules(rivals.softmax) == ("pallas_rungs.performance.rivals",)


def test_a_function_from_elsewhere_counts_with_what_it_names() -> None:
    block = (512, 512, 512)

    def product(x: Any, y: Any) -> Any:
        return matmul_scratch.matmul_scratch(x, y, block=block)

    first = code_hash(product)
    assert "pallas_rungs.kernels.matmul_scratch" in covered_modules(product)
    block = (256, 256, 256)
    assert code_hash(product) != first


def test_a_function_without_source_is_refused_by_name() -> None:
    made = eval("lambda x: x")
    with pytest.raises(SourcesError, match="the source of <lambda> is not at hand"):
        code_hash(made)
    with pytest.raises(SourcesError, match="is no Python function"):
        code_hash(len)
