"""What differs between two sets of verdicts, said so that a person can read it."""

from pallas_rungs.museum import changes, matrix_text, recorded

RECORDED = {
    "first_bug": {"trace": "passed", "interpret": "wrong"},
    "second_bug": {"trace": "refused", "interpret": "refused"},
}


def test_equal_verdicts_differ_in_nothing() -> None:
    assert changes(RECORDED, RECORDED) == []


def test_each_verdict_that_differs_has_a_line() -> None:
    found = {
        "first_bug": {"trace": "passed", "interpret": "passed"},
        "second_bug": {"trace": "passed", "interpret": "refused"},
    }
    assert changes(RECORDED, found) == [
        "first_bug  interpret: wrong → passed",
        "second_bug  trace: refused → passed",
    ]


def test_a_bug_that_one_side_lacks_was_not_tried_there() -> None:
    assert changes({}, {"new": {"trace": "passed"}}) == ["new  trace: not tried → passed"]
    assert changes({"old": {"trace": "passed"}}, {}) == ["old  trace: passed → not tried"]


def test_a_changed_record_of_the_museum_is_seen() -> None:
    planted = recorded()
    planted["negative_index"]["compile"] = "refused"
    assert changes(planted, recorded()) == ["negative_index  compile: refused → passed"]


def test_the_matrix_as_text_lines_up_and_sets_off_what_did_not_pass() -> None:
    rows = {name: {**dict.fromkeys(RUNGS, "passed"), **row} for name, row in RECORDED.items()}
    assert matrix_text(rows).splitlines() == [
        "bug         trace    interpret  simulate  lower  compile",
        "first_bug   ·        wrong      ·         ·      ·",
        "second_bug  refused  refused    ·         ·      ·",
    ]


RUNGS = ("trace", "interpret", "simulate", "lower", "compile")
