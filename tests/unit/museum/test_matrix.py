"""The matrix of the museum: rows that lead to bugs, symptoms to choose from, no script."""

import re

import pytest

from pallas_rungs import bugs
from pallas_rungs.museum import matrix, recorded

ALT = "Bugs against rungs."


def rows(html: str) -> dict[str, str]:
    """Link of each row -> its group."""
    pairs = re.findall(r'<tr data-group="(\d)"><th scope="row"><a href="([^"]+)">', html)
    return {link: group for group, link in pairs}


def test_every_bug_has_a_row_that_leads_to_it() -> None:
    html = matrix(recorded(), alt=ALT)._repr_html_()
    assert list(rows(html)) == [bugs.link(bug) for bug in bugs.MUSEUM]


def test_the_first_rung_that_blames_is_set_off() -> None:
    html = matrix({"dma_without_wait": bugs.dma_without_wait.EXPECTED}, alt=ALT)._repr_html_()
    (row,) = re.findall(r"<tbody><tr.*?</tr>", html)
    cells = re.findall(r'<td( class="pr-caught")?>', row)
    assert [bool(caught) for caught in cells] == [False, False, True, False, False]


def test_a_symptom_hides_the_rows_of_all_others_and_none_of_its_own() -> None:
    html = matrix(recorded(), alt=ALT)._repr_html_()
    groups = list(bugs.GROUPS)
    for bug in bugs.MUSEUM:
        assert rows(html)[bugs.link(bug)] == str(groups.index(bug.GROUP))
    for place, group in enumerate(groups):
        label = re.search(rf'value="{place}"> ([^<]+) \((\d+)\)</label>', html)
        assert label[1] == group
        assert int(label[2]) == sum(group == bug.GROUP for bug in bugs.MUSEUM)
        assert (
            f'.pr-figure:has(.pr-filter [value="{place}"]:checked) '
            f'.pr-museum [data-group]:not([data-group="{place}"]){{display:none}}'
        ) in html


def test_every_row_is_shown_before_a_symptom_is_chosen() -> None:
    html = matrix(recorded(), alt=ALT)._repr_html_()
    assert re.findall(r'value="(\w+)" checked', html) == ["all"]
    assert "<script" not in html


def test_the_key_has_the_statuses_that_occur_and_no_others() -> None:
    html = matrix({"dma_without_wait": bugs.dma_without_wait.EXPECTED}, alt=ALT)._repr_html_()
    key = html.partition('class="pr-key"')[2]
    assert re.findall(r'data-status="([^"]+)"', key) == ["passed", "wrong"]


def test_a_name_that_is_no_bugs_is_refused() -> None:
    with pytest.raises(ValueError, match="no bug is called unheard_of"):
        matrix({"unheard_of": {}}, alt=ALT)
    with pytest.raises(ValueError, match="no rows"):
        matrix({}, alt=ALT)
