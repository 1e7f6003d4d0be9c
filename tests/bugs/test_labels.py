"""The labels of the museum: complete, consistent, and some bugs for every rung and symptom."""

from collections import Counter
from types import ModuleType

import pytest

from pallas_rungs import bugs
from pallas_rungs.bugs import GROUPS, MUSEUM

RUNGS = ("trace", "interpret", "simulate", "lower", "compile")
BLAMES = {"wrong", "refused", "deadlocked", "crashed"}
STATUSES = {"passed", "tool cannot", *BLAMES}

each_bug = pytest.mark.parametrize("bug", MUSEUM, ids=lambda bug: bug.__name__.rpartition(".")[2])


@each_bug
def test_a_verdict_is_expected_on_every_rung(bug: ModuleType) -> None:
    assert tuple(bug.EXPECTED) == RUNGS
    assert set(bug.EXPECTED.values()) <= STATUSES


@each_bug
def test_first_caught_is_the_first_rung_that_blames_the_kernel(bug: ModuleType) -> None:
    first = next((rung for rung in RUNGS if bug.EXPECTED[rung] in BLAMES), "none")
    assert first == bug.FIRST_CAUGHT


@each_bug
def test_symptom_and_rule_are_one_line_each(bug: ModuleType) -> None:
    for label in (bug.SYMPTOM, bug.RULE):
        assert label
        assert label == label.strip()
        assert "\n" not in label


def test_no_two_bugs_have_the_same_symptom_or_rule() -> None:
    for label in ("SYMPTOM", "RULE"):
        said = [getattr(bug, label) for bug in MUSEUM]
        assert len(set(said)) == len(said)


def test_every_symptom_of_the_closed_set_has_its_bugs() -> None:
    assert {bug.GROUP for bug in MUSEUM} == set(GROUPS)


def test_every_rung_is_the_first_to_catch_some_bugs_and_two_or_more_are_caught_by_none() -> None:
    counts = Counter(bug.FIRST_CAUGHT for bug in MUSEUM)
    assert set(counts) == {*RUNGS, "none"}
    assert counts["none"] >= 2
    assert counts.total() >= 26


def test_the_museum_follows_the_rungs() -> None:
    order = [(*RUNGS, "none").index(bug.FIRST_CAUGHT) for bug in MUSEUM]
    assert order == sorted(order)


def test_no_bug_is_shown_twice_or_left_out(root) -> None:
    files = {path.stem for path in (root / "code/pallas_rungs/bugs").glob("*.py")}
    names = [bugs.name(bug) for bug in MUSEUM]
    assert sorted(names) == sorted(files - {"__init__"})
