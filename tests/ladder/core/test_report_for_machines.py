"""The JUnit and Markdown forms of reports hold any text, and say what the verdicts say."""

import re
from xml.etree import ElementTree

import pytest

from pallas_rungs.ladder import Frame, KernelError, Report, Rung, Status, Verdict
from pallas_rungs.ladder.files import FileClimb
from pallas_rungs.ladder.report_junit import junit_xml
from pallas_rungs.ladder.report_markdown import (
    code,
    error_markdown,
    fenced,
    report_markdown,
    words,
)

ODD = "\x00\x1b[31m]]> <b>&amp; \"'| `` @someone #12 \ud800 ünï \N{GRINNING FACE}\nsecond | line"


def climbed(*statuses, error="", text=ODD):
    verdicts = tuple(
        Verdict.of(
            Rung.COMPILE,
            status,
            "v5e",
            text,
            error=None
            if status is Status.PASSED
            else KernelError(text, text, text, Frame("/a|b.py", 3, "f", text), text),
        )
        for status in statuses
    )
    reports = (Report("f", verdicts, {"jax": "1"}),) if statuses else ()
    return FileClimb("/some/where/k.py:f", reports, error=error)


# JUnit


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_its_element(status):
    root = ElementTree.fromstring(junit_xml([climbed(status)]).encode())
    (case,) = root.iter("testcase")
    found = [child.tag for child in case]
    wanted = {
        Status.PASSED: [],
        Status.UNCHECKED: ["skipped"],
        Status.TOOL_CANNOT: ["skipped"],
        Status.UNAVAILABLE: ["skipped"],
        Status.CRASHED: ["error"],
        Status.REFERENCE_FAILED: ["error"],
    }
    assert found == wanted.get(status, ["failure"])
    if found:
        assert case[0].get("message").startswith(f"{status}: ")


def test_a_case_is_named_by_file_function_rung_and_target():
    root = ElementTree.fromstring(junit_xml([climbed(Status.PASSED)]).encode())
    (case,) = root.iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("k.py:f.f", "compile v5e")


def test_counts_are_those_of_the_cases():
    climbs = [
        climbed(Status.PASSED, Status.WRONG, Status.CRASHED, Status.UNCHECKED),
        climbed(error="cannot be imported\nat line 3"),
    ]
    root = ElementTree.fromstring(junit_xml(climbs).encode())
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
        "skipped": "1",
    }
    assert [suite.get("tests") for suite in root] == ["4", "1"]


def test_any_text_makes_valid_xml_and_is_read_back():
    text = junit_xml([climbed(Status.WRONG, error=ODD)])
    root = ElementTree.fromstring(text.encode())
    (failure,) = root.iter("failure")
    assert "<b>&amp; \"'| `` @someone" in failure.text
    assert "\N{GRINNING FACE}" in failure.text
    assert "\x00" not in text


# Markdown


def test_a_row_of_the_table_stays_one_row_of_four_cells():
    lines = report_markdown(climbed(Status.WRONG).reports[0]).splitlines()
    (row,) = (line for line in lines if line.startswith("| 5 compile"))
    assert len(re.split(r"(?<!\\)\|", row)) == 6


def test_what_the_program_says_stands_in_code():
    text = report_markdown(climbed(Status.WRONG).reports[0])
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", outside)
    assert "@someone" not in outside
    assert "#12" not in outside
    assert "<b>" not in outside


@pytest.mark.parametrize("text", ["a", "`a", "a``b", "```", "` `` ```", "a|b", ""])
def test_a_code_span_is_longer_fenced_than_what_it_holds(text):
    span = code(text)
    if not text:
        assert span == ""
        return
    fence = re.match(r"`+", span)[0]
    inner = span[len(fence) : -len(fence)]
    assert span.endswith(fence)
    assert fence not in re.findall(r"`+", inner)
    assert inner.strip() == text


def test_a_block_is_longer_fenced_than_what_it_holds_and_cut():
    lines = fenced("````\nx\n" + "y" * 10_000)
    assert lines[0] == "`````text"
    assert lines[-1] == "`````"
    assert len("\n".join(lines)) < 4000


def test_plain_words_stay_words():
    assert words("agrees with the reference") == "agrees with the reference"
    assert words("1 * 2 * 3") == "`1 * 2 * 3`"


def test_the_same_trouble_of_several_rungs_is_told_once():
    text = report_markdown(climbed(Status.REFUSED, Status.REFUSED).reports[0])
    assert text.count("<details>") == text.count("</details>") == 1
    assert "compile v5e, compile v5e" in text


def test_the_heading_says_how_it_went():
    assert "every rung asked for passed" in report_markdown(climbed(Status.PASSED).reports[0])
    sick = report_markdown(climbed(Status.WRONG, Status.PASSED, Status.UNCHECKED).reports[0])
    assert "1 of 3 verdicts found fault" in sick.splitlines()[0]
    assert "could not be tried" in error_markdown("k.py:f", "no such module")
