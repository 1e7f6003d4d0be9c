"""The placard of a bug: symptom, verdicts, the words of who caught it, rule."""

from pallas_rungs.ladder import Report, Rung, Status, Verdict
from pallas_rungs.museum.placard import Placard


def shown(*statuses: Status, words: str = "4 < 5 values") -> Placard:
    rungs = [rung for rung in Rung if rung is not Rung.CHIP]
    verdicts = tuple(
        Verdict.of(rung, status, summary=words if status is not Status.PASSED else "fine")
        for rung, status in zip(rungs, statuses, strict=True)
    )
    return Placard("hangs", "it `hangs`", "Never do that.", Report("bug", verdicts))


PASSED, WRONG = Status.PASSED, Status.WRONG


def test_the_words_are_those_of_the_first_rung_that_blames() -> None:
    placard = shown(PASSED, WRONG, PASSED, PASSED, PASSED)
    assert placard.said == ("interpret", "4 < 5 values")
    html = placard._repr_html_()
    assert "<b>interpret</b> says: <code>4 &lt; 5 values</code>" in html
    assert "it <code>hangs</code>" in html
    assert html.count('<td class="pr-caught">') == 1


def test_long_words_are_cut() -> None:
    rung, words = shown(PASSED, PASSED, WRONG, PASSED, PASSED, words="x" * 999).said
    assert rung == "simulate"
    assert words.endswith("…")
    assert len(words) < 250


def test_a_bug_that_no_rung_catches_has_nobody_speak() -> None:
    placard = shown(PASSED, PASSED, PASSED, PASSED, PASSED)
    assert placard.said == ("", "")
    assert "says" not in placard._repr_html_()
    assert str(placard).splitlines() == [
        "hangs: it `hangs`",
        "trace   interpret  simulate  lower   compile",
        "passed  passed     passed    passed  passed",
        "Rule: Never do that.",
    ]
