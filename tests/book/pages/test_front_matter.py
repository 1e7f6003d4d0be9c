import pytest

from pallas_rungs.book.front_matter import (
    Page,
    check_ids,
    check_needs,
    check_rungs,
    read_block,
    read_page,
)

GOOD = {"covers": ["M-01"], "needs": ["start/a"], "rungs": ["trace"], "minutes": 5}


def test_a_page_keeps_what_it_says():
    page, wrong = read_page("book/start/b", GOOD, base="book")
    assert wrong == []
    assert page == Page("book/start/b", ("M-01",), ("book/start/a",), ("trace",), 5)


def test_rungs_come_lowest_first():
    page, _ = read_page("b", {**GOOD, "rungs": ["compile", "trace", "source"]})
    assert page.rungs == ("source", "trace", "compile")


@pytest.mark.parametrize("key", ["covers", "needs", "rungs", "minutes"])
def test_a_page_with_cells_must_give_every_key(key):
    block = {name: value for name, value in GOOD.items() if name != key}
    _, wrong = read_page("b", block)
    assert len(wrong) == 1
    assert f"`{key}`" in wrong[0]


def test_a_page_without_cells_need_give_none():
    assert read_page("b", {}, executed=False) == (Page("b"), [])


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("covers", "M-01", "must be a list"),
        ("covers", ["M-01", "M-01"], "M-01 twice"),
        ("needs", [1], "must be a list"),
        ("rungs", ["interpreted"], "'interpreted'; the rungs are source, trace"),
        ("minutes", "12", "whole number"),
        ("minutes", 0, "whole number"),
        ("minutes", True, "whole number"),
    ],
)
def test_a_wrong_value_is_named(key, value, said):
    _, wrong = read_page("b", {**GOOD, key: value})
    assert any(said in line for line in wrong), wrong


def test_an_unknown_id_is_named():
    assert check_ids(Page("b", covers=("M-01", "Z-99")), ["M-01"]) == [
        "`covers` names Z-99, which is not in the coverage list"
    ]


def test_a_need_without_a_page_is_named():
    pages = {"a": Page("a"), "b": Page("b", needs=("a", "c"))}
    assert check_needs(pages) == {"b": ["`needs` names c, and there is no such page"]}


def test_a_circle_of_needs_is_found_on_every_page_of_it():
    pages = {
        "a": Page("a", needs=("b",)),
        "b": Page("b", needs=("a",)),
        "c": Page("c", needs=("a",)),
    }
    assert sorted(check_needs(pages)) == ["a", "b"]


def test_rungs_must_be_those_of_the_claims():
    page = Page("b", rungs=("trace", "lower"))
    assert check_rungs(page, ["trace", "lower", ""]) == []
    assert check_rungs(page, ["trace", "simulate"]) == [
        "the page has a claim on rung simulate, which `rungs` does not list",
        "`rungs` lists lower, and no claim of the page is on that rung",
    ]


def test_a_block_is_read():
    assert read_block("---\ncovers: [M-01]\n---\n# A\n") == {"covers": ["M-01"]}
    assert read_block("# A\n---\n") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ncovers: []\n", "never closed"),
        ("---\na: [\n---\n", "not YAML"),
        ("---\n- a\n---\n", "mapping"),
    ],
)
def test_a_bad_block_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        read_block(text)
