"""Every exercise: the check accepts the solution, and neither the starter nor a known mistake."""

import importlib
import pkgutil

import pytest

import pallas_rungs.practice

EXERCISES = [
    importlib.import_module(f"pallas_rungs.practice.{module.name}")
    for module in pkgutil.iter_modules(pallas_rungs.practice.__path__)
    if module.name != "judging"
]
NAMES = [exercise.__name__.rpartition(".")[2] for exercise in EXERCISES]
MISTAKES = [
    pytest.param(exercise, wrong, hint, id=f"{name}: {wrong.__name__}")
    for name, exercise in zip(NAMES, EXERCISES, strict=True)
    for wrong, hint in exercise.WRONG
]


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_the_solution_passes(exercise):
    exercise.check(exercise.solution)


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_the_starter_is_not_enough(exercise):
    with pytest.raises(AssertionError):
        exercise.check(exercise.starter)


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_there_are_at_least_two_mistakes(exercise):
    assert len(exercise.WRONG) >= 2


@pytest.mark.parametrize(("exercise", "wrong", "hint"), MISTAKES)
def test_a_mistake_is_rejected_and_told(exercise, wrong, hint):
    with pytest.raises(AssertionError, match=rf"(?s){hint}"):
        exercise.check(wrong)
