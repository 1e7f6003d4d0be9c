"""References that do not take what the kernel takes: what they get, and what is said."""

from types import ModuleType, SimpleNamespace

import pytest

from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import Status, climb
from pallas_rungs.ladder.notes import notes
from pallas_rungs.ladder.protocol import ProtocolError, problem_from_module
from pallas_rungs.ladder.rungs import attempt


def add_one(x, block=8, *, scale=1):
    assert block == 8
    return sick.add_one(x)


def module(reference):
    made = ModuleType("reader")
    vars(made).update(add_one=add_one, reference=reference)
    return made


def posed(reference, args=(sick.X,), **kwargs):
    [problem] = problem_from_module(module(reference), "add_one", args, None, kwargs)
    return problem


def test_an_argument_that_the_reference_does_not_take_goes_to_the_kernel_alone():
    problem = posed(lambda x: x + 1, block=8, scale=1)
    assert problem.kernel_alone == ("block", "scale")
    verdict = attempt(problem, "interpret")
    assert verdict.status is Status.PASSED
    assert notes(verdict) == [
        "block, scale go to the kernel alone: the reference has no such parameter."
    ]


def test_a_reference_gets_the_arguments_by_name_that_it_takes():
    seen = {}

    def reference(x, scale):
        seen["scale"] = scale
        return x + 1

    problem = posed(reference, block=8, scale=1)
    assert problem.kernel_alone == ("block",)
    assert attempt(problem, "interpret").status is Status.PASSED
    assert seen == {"scale": 1}
    assert posed(lambda x, **more: x + 1, block=8).kernel_alone == ()


def test_the_cases_of_a_file_are_fitted_too():
    file = module(lambda x: x + 1)
    file.cases = lambda: [SimpleNamespace(name="one", args=(sick.X,), kwargs={"block": 8})]
    [problem] = problem_from_module(file, "add_one")
    assert problem.kernel_alone == ("block",)
    assert attempt(problem, "interpret").status is Status.PASSED


def test_an_argument_by_position_too_many_is_named_with_what_to_do():
    def reference(x):
        return x + 1

    with pytest.raises(ProtocolError) as error:
        posed(reference, (sick.X, 8))
    assert str(error.value) == (
        "the reference reference(x) cannot be called with the arguments of add_one: too many "
        "positional arguments. It has no parameter for block. Where block is for add_one alone, "
        "give it by name (block=…): an argument by name that the reference has no parameter for "
        "goes to add_one alone"
    )


def test_what_the_kernel_does_not_take_either_is_not_laid_to_the_reference():
    assert posed(lambda x: x + 1, (sick.X, 8, 9)).kernel_alone == ()


def test_a_reference_that_wants_more_is_told_so():
    with pytest.raises(ProtocolError, match=r"missing a required argument: 'y'$"):
        posed(lambda x, y: x + y)


def test_a_reference_given_in_python_gets_advice_of_its_own():
    report = climb(add_one, sick.X, 8, reference=lambda x: x + 1, rungs=["interpret"])
    verdict = report.of("interpret")
    assert verdict.status is Status.REFERENCE_FAILED
    assert "called with the kernel's arguments" in verdict.error.advice


def test_a_function_without_a_kernel_is_not_said_to_have_fallen_back():
    for rung in ("trace", "interpret", "lower"):
        verdict = climb(lambda x: x + 1, sick.X, rungs=[rung]).of(rung)
        assert verdict.status is Status.NO_KERNEL
        assert "calls no Pallas kernel" in verdict.summary
        assert "fell back" not in verdict.summary
