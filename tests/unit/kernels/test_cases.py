"""The cases of every kernel: named apart, repeatable, with references in float64."""

import importlib
import inspect

import jax
import numpy as np
import pytest

from pallas_rungs.kernels.catalogue import KERNELS, Kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_cases_have_names_of_their_own_and_repeat_exactly(kernel: Kernel) -> None:
    first, again = kernel.cases(), kernel.cases()
    assert len({case.name for case in first}) == len(first)
    for one, two in zip(first, again, strict=True):
        for want in jax.tree.leaves(kernel.reference(*one.args)):
            assert want.dtype == np.float64
        for x, y in zip(jax.tree.leaves(one.args), jax.tree.leaves(two.args), strict=True):
            np.testing.assert_array_equal(x, y)


MODULES = sorted({kernel.call.__module__.rpartition(".")[2] for kernel in KERNELS} | {"ring"})


@pytest.mark.parametrize("module", MODULES)
def test_a_call_is_for_the_chip_unless_told_otherwise(module: str) -> None:
    defined = vars(importlib.import_module(f"pallas_rungs.kernels.{module}")).values()
    for function in filter(inspect.isfunction, defined):
        interpret = inspect.signature(function).parameters.get("interpret")
        assert interpret is None or interpret.default in (False, inspect.Parameter.empty), function


def test_every_module_of_a_kernel_is_in_the_catalogue(root) -> None:
    files = {path.stem for path in (root / "code/pallas_rungs/kernels").glob("*.py")}
    modules = {kernel.call.__module__.rpartition(".")[2] for kernel in KERNELS}
    assert modules == files - {"__init__", "case", "catalogue", "checks", "products", "ring"}
