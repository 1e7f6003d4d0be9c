"""What a file may define, and what is said when it does not."""

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import Status
from pallas_rungs.ladder.protocol import ProtocolError, problem_from_module
from pallas_rungs.ladder.rungs import attempt


def module(**names):
    made = ModuleType("reader")
    made.__file__ = "/home/reader/kernel.py"
    vars(made).update(names)
    return made


def test_a_function_with_inputs_and_reference():
    file = module(add=sick.add_one, inputs=lambda: (sick.X,), reference=lambda x: x + 1, RTOL=1e-3)
    [posed] = problem_from_module(file, "add")
    assert posed.rtol == 1e-3
    assert attempt(posed, "interpret").status is Status.PASSED


def test_the_symbols_own_reference_comes_first():
    file = module(
        add=sick.add_one, inputs=lambda: (sick.X,), add_reference=lambda x: x + 1, want=lambda x: x
    )
    [posed] = problem_from_module(file, "add")
    assert posed.reference is file.add_reference


def test_a_factory_is_called_for_each_interpreter():
    asked = []

    def make(interpret):
        asked.append(interpret)
        return lambda x: sick.add_one(x, interpret=interpret)

    file = module(make=make, inputs=lambda: (sick.X,), want=lambda x: x + 1)
    [posed] = problem_from_module(file, "make")
    for rung in ("trace", "interpret", "simulate", "lower"):
        assert attempt(posed, rung).status is Status.PASSED
    assert False in asked
    assert True in asked
    assert any(type(i).__name__ == "InterpretParams" for i in asked)


@pytest.mark.parametrize(
    "cases",
    [
        {"small": (sick.X,), "large": (np.tile(sick.X, (2, 1)),)},
        [("small", (sick.X,)), ("large", (sick.X,))],
        (
            SimpleNamespace(name="small", args=(sick.X,), rtol=0.5, atol=0.25),
            SimpleNamespace(name="large", args=(sick.X,), rtol=0.5, atol=0.25),
        ),
    ],
)
def test_cases(cases):
    posed = problem_from_module(module(add=sick.add_one, cases=lambda: cases), "add")
    assert [p.name for p in posed] == ["add small", "add large"]
    assert posed[0].rtol in (None, 0.5)
    assert posed[0].args[0] is sick.X


def test_tuples_of_arguments_as_cases():
    posed = problem_from_module(module(add=sick.add_one, cases=lambda: [(sick.X,)]), "add")
    assert posed[0].args == (sick.X,)


def test_arguments_given_replace_the_files_own():
    file = module(add=sick.add_one, inputs=lambda: (1, 2))
    [posed] = problem_from_module(file, "add", args=(sick.X,))
    assert posed.args == (sick.X,)


def test_extra_simulator_settings():
    file = module(add=sick.add_one, inputs=lambda: (sick.X,), R3_EXTRA={"zero": {"random_seed": 1}})
    assert problem_from_module(file, "add")[0].simulations == {"zero": {"random_seed": 1}}


def test_a_missing_symbol_names_those_there_are():
    def add(x):
        return x

    add.__module__ = "reader"
    with pytest.raises(ProtocolError, match=r"kernel.py has no 'mul'; it defines add"):
        problem_from_module(module(add=add), "mul")


def test_a_symbol_that_is_no_function():
    with pytest.raises(ProtocolError, match="'X' is no function but a ndarray"):
        problem_from_module(module(X=sick.X), "X")


def test_no_arguments_to_call_it_with():
    with pytest.raises(ProtocolError, match="neither inputs"):
        problem_from_module(module(add=sick.add_one), "add")
