"""Tables that their readers filter: which rows a choice leaves, in a browser's own terms."""

import re

import pytest

from pallas_rungs.figures import Choice, filtered_table
from pallas_rungs.figures.choices import Option, fieldset

ROWS = {"exp": ("✓", "math"), "dot": ("✓", "tpu"), "sort": ("", "")}
CHOICES = (
    Choice("Where?", {"TPU": ("exp", "dot"), "nowhere": ("sort",)}),
    Choice("In which dialect?", {"math": ("exp",), "tpu": ("dot",)}),
)
TABLE = filtered_table(("primitive", "TPU", "dialects"), ROWS, CHOICES, alt="Rules.")


def left(html: str, *chosen: tuple[int, str]) -> set[str]:
    """Apply the style sheet's rules as a browser does: the rows that the chosen buttons leave."""
    rows = dict(re.findall(r'<tr class="([^"]*)"><th scope="row"><code>(\w+)', html))
    shown = {name: set(classes.split()) for classes, name in rows.items()}
    rules = re.findall(
        r'\[name="pr-\w+-(\d)"\]\[value="(\w+)"\]:checked\) .pr-rows tbody tr:not\(\.([\w-]+)\)',
        html,
    )
    for place, value, kept in rules:
        if (int(place), value) in chosen:
            shown = {name: classes for name, classes in shown.items() if kept in classes}
    return set(shown)


def test_each_choice_leaves_its_rows_and_two_leave_what_both_leave() -> None:
    html = TABLE._repr_html_()
    assert left(html) == {"exp", "dot", "sort"}
    assert left(html, (0, "1")) == {"exp", "dot"}
    assert left(html, (0, "2")) == {"sort"}
    assert left(html, (0, "1"), (1, "2")) == {"dot"}
    assert left(html, (0, "2"), (1, "2")) == set()


def test_all_rows_are_shown_at_first_and_no_script_is_needed() -> None:
    html = TABLE._repr_html_()
    assert re.findall(r'value="(\w+)" checked', html) == ["all", "all"]
    assert "<script" not in html
    assert "> TPU (2)</label>" in html


def test_two_tables_of_a_page_do_not_share_their_buttons() -> None:
    other = filtered_table(("primitive", "TPU", "dialects"), ROWS, CHOICES, alt="Other rules.")
    names = [set(re.findall(r'name="([^"]+)"', t._repr_html_())) for t in (TABLE, other)]
    assert len(names[0]) == 2
    assert not names[0] & names[1]


def test_the_plain_form_has_every_row() -> None:
    assert str(TABLE).split("\n")[1:] == ["exp        ✓    math", "dot        ✓    tpu", "sort"]


def test_faults_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="needs rows"):
        filtered_table(("a", "b"), {}, (), alt="x")
    with pytest.raises(ValueError, match="row exp has a name and 1 cells, for 3 headings"):
        filtered_table(("a", "b", "c"), {"exp": ("1",)}, (), alt="x")
    with pytest.raises(ValueError, match="'Where', 'TPU': no row is called 'sin'"):
        filtered_table(("a", "b"), {"exp": ("",)}, [Choice("Where", {"TPU": ["sin"]})], alt="x")
    with pytest.raises(ValueError, match="different values"):
        fieldset("n", "Which", [Option("1", "a", 0), Option("1", "b", 0)])


def test_a_label_is_shown_in_place_of_a_name_and_two_rows_may_share_it() -> None:
    labels = {"exp": "*e*", "dot": "*e*"}
    named = filtered_table(
        ("primitive", "TPU", "dialects"), ROWS, CHOICES, alt="Rules.", labels=labels
    )
    html = named._repr_html_()
    assert html.count('<th scope="row"><em>e</em></th>') == 2
    assert '<th scope="row"><code>sort</code></th>' in html
    assert str(named).count("*e*") == 2
