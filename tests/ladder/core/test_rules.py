"""From a verdict to the museum: what is likely, what is a candidate, and what stays unknown."""

import json

import numpy as np
import pytest

from pallas_rungs import bugs
from pallas_rungs.bugs import MUSEUM
from pallas_rungs.ladder import Difference, KernelError, Report, Rung, Status, Verdict
from pallas_rungs.ladder.compare import compare
from pallas_rungs.ladder.report_html import report_html
from pallas_rungs.ladder.rules import NO_SIGN, SITE, rule_named, rule_names, suggestions

ROWS = np.arange(32 * 128, dtype=np.float32).reshape(32, 128) + 1


def refused(message, rung=Rung.LOWER, target="v5e", **details):
    error = KernelError("ValueError", message, message)
    return Verdict.of(rung, Status.REFUSED, target, message, error=error, details=details)


def wrong(got, want=ROWS, rung=Rung.INTERPRET, target="", **details):
    difference = compare(got, want)
    return Verdict.of(
        rung, Status.WRONG, target, str(difference), difference=difference, details=details
    )


def named(verdict):
    return [(each.rule.name, each.kind) for each in suggestions(verdict)]


@pytest.mark.parametrize("bug", MUSEUM, ids=lambda bug: bug.__name__.rpartition(".")[2])
def test_every_bug_of_the_museum_can_be_pointed_to_or_it_is_said_why_not(bug):
    name = bug.__name__.rpartition(".")[2]
    assert (name in rule_names()) != (name in NO_SIGN)


def test_every_rule_is_the_museums_in_its_words():
    rules = {bug.__name__.rpartition(".")[2]: bug.RULE for bug in MUSEUM}
    assert {name: rule_named(name).text for name in rule_names()} == {
        name: rules[name] for name in rule_names()
    }
    assert set(NO_SIGN) <= set(rules)
    with pytest.raises(KeyError, match="no bug 'moths'"):
        rule_named("moths")


@pytest.mark.parametrize("bug", MUSEUM, ids=bugs.name)
def test_a_link_leads_to_the_bugs_section_on_the_site(bug):
    assert rule_named(bugs.name(bug)).link == f"{SITE}book/evidence/{bugs.link(bug)}"


def test_a_message_of_one_fault_gives_its_rule_alone():
    message = "The kernel function in the pallas_call f captures constants [f32[8,128]]."
    assert named(refused(message)) == [("captured_array", "Likely rule")]


def test_a_message_of_several_faults_gives_candidates():
    found = named(refused("Out-of-bounds block index (8, 0)", Rung.SIMULATE, "default"))
    assert found == [
        ("element_offsets_in_index_map", "Candidate"),
        ("block_index_past_the_end", "Candidate"),
    ]


@pytest.mark.parametrize(
    "verdict",
    [
        refused("the moon is in the wrong phase"),
        wrong(ROWS + 1),
        Verdict.of(Rung.COMPILE, Status.PASSED, "v5e"),
        Verdict.of(Rung.INTERPRET, Status.NO_KERNEL),
        Verdict(Rung.LOWER, Status.TOOL_CANNOT, "v5e", "captures constants"),
    ],
)
def test_unknown_stays_unknown(verdict):
    assert suggestions(verdict) == ()


def test_a_race_is_laid_to_copies_or_to_the_parallel_axis_by_what_the_kernel_uses():
    race = "RACE DETECTED"
    copies = refused(race, Rung.SIMULATE, "races", uses=["copies"])
    parallel = refused(race, Rung.SIMULATE, "two cores", uses=["parallel axes"])
    both = refused(race, Rung.SIMULATE, "two cores", uses=["parallel axes", "copies"])
    assert named(copies) == [("dma_without_wait", "Candidate")]
    assert named(parallel) == [("parallel_reduction", "Likely rule")]
    assert {name for name, _ in named(both)} == {"dma_without_wait", "parallel_reduction"}
    assert {kind for _, kind in named(both)} == {"Candidate"}


def with_nan(where):
    got = ROWS.copy()
    got[where] = np.nan
    return got


@pytest.mark.parametrize(
    ("got", "pattern"),
    [
        (with_nan(np.s_[:]), "NaN everywhere"),
        (with_nan(np.s_[24:]), "NaN to the end of axis 0, from 24 of 32"),
        (with_nan(np.s_[:, 100:]), "NaN to the end of axis 1, from 100 of 128"),
        (with_nan(np.s_[8:24]), "NaN in whole slices of axis 0, 16 of 32, others right"),
        (np.concatenate([ROWS[:16]] * 2), "the second half of axis 0 repeats the first"),
        (np.zeros_like(ROWS), "zero everywhere"),
    ],
)
def test_where_the_wrong_values_are_is_told(got, pattern):
    assert pattern in compare(got, ROWS).patterns


def test_scattered_values_have_no_pattern():
    got = ROWS.copy()
    got[3, 7] = got[20, 90] = -1
    assert compare(got, ROWS).patterns == ()


def test_numbers_give_candidates_by_pattern_and_by_what_the_kernel_uses():
    everywhere = with_nan(np.s_[:])
    never_cleared = ["accumulators", "accumulators that are never cleared"]
    assert named(wrong(everywhere, uses=never_cleared)) == [
        ("accumulator_not_cleared", "Candidate")
    ]
    assert named(wrong(everywhere, uses=["accumulators"])) == []
    reduced = wrong(everywhere, uses=["partial blocks", "reductions over partial blocks"])
    assert named(reduced) == [("partial_block_sum", "Candidate")]
    assert named(wrong(everywhere, uses=["partial blocks"])) == []
    some_rows, last_rows = with_nan(np.s_[8:24]), with_nan(np.s_[24:])
    assert named(wrong(some_rows, uses=["blocks past the end"])) == [
        ("element_offsets_in_index_map", "Candidate")
    ]
    assert named(wrong(last_rows, uses=["output blocks not written"])) == [
        ("grid_rounded_down", "Candidate")
    ]
    assert named(wrong(last_rows, uses=["masks of minus infinity"])) == [
        ("fully_masked_row", "Candidate")
    ]
    assert named(wrong(some_rows)) == named(wrong(last_rows)) == []


def test_a_difference_keeps_its_patterns_through_json_and_reads_older_ones():
    difference = compare(with_nan(np.s_[24:]), ROWS)
    data = json.loads(json.dumps(difference.to_json()))
    assert Difference.from_json(data) == difference
    del data["patterns"]
    assert Difference.from_json(data).patterns == ()


def test_every_form_of_a_report_names_the_rule():
    verdict = refused("captures constants")
    report = Report("sick", (verdict,), {})
    rule = rule_named("captured_array")
    told = str(report).splitlines()
    at = told.index(f"  Likely rule (lower v5e): {rule.text}")
    assert told[at + 1].strip() == rule.link
    assert f'<a href="{rule.link}">' in report_html("sick", report.verdicts, {})
    data = json.loads(json.dumps(report.to_json()))
    assert data["verdicts"][0]["rules"][0]["rule"] == "captured_array"
    assert Report.from_json(data) == report
