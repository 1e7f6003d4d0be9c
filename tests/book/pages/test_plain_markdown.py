import pytest

from pallas_rungs.book.plain_markdown import Surroundings, convert

PAGE = Surroundings(
    docname="book/start/b",
    address="https://x.org/book/start/b.html",
    titles={"book/start/a": "The first"},
    labels={"a-sum": ("book/start/a", "a-sum", "A sum")},
    site="https://x.org",
)


@pytest.mark.parametrize(
    ("myst", "plain"),
    [
        ("{ref}`a-sum`", "[A sum](https://x.org/book/start/a.html#a-sum)"),
        ("{ref}`that <a-sum>`", "[that](https://x.org/book/start/a.html#a-sum)"),
        ("{doc}`a`", "[The first](https://x.org/book/start/a.html)"),
        ("[one](a.md)", "[one](https://x.org/book/start/a.html)"),
        ("[](a.md)", "[The first](https://x.org/book/start/a.html)"),
        ("[one](#a-sum)", "[one](https://x.org/book/start/a.html#a-sum)"),
        ("[out](https://y.org/z)", "[out](https://y.org/z)"),
        ("{math}`a_b` and {term}`ref`", "$a_b$ and ref"),
        ("{unknown}`x`", "`x`"),
        ("`{ref}` is `code [a](b.md)`", "`{ref}` is `code [a](b.md)`"),
        ("*words*{.small}", "*words*"),
    ],
)
def test_what_stands_in_a_line(myst, plain):
    assert convert(myst, PAGE) == plain


def test_labels_and_comments_go():
    assert convert("(here)=\n% a remark\n## Title", PAGE) == "## Title"


def test_a_note_becomes_a_quotation():
    assert convert(":::{note}\n:class: x\nSee {ref}`a-sum`.\n:::", PAGE).strip() == (
        "> **Note**\n>\n> See [A sum](https://x.org/book/start/a.html#a-sum)."
    )


def test_blocks_inside_blocks_are_converted():
    text = "::::{grid} 2\n:gutter: 3\n\n:::{grid-item-card} Go\n:link: a\nHere.\n:::\n::::"
    assert convert(text, PAGE).strip() == (
        "> **[Go](https://x.org/book/start/a.html)**\n>\n> Here."
    )


def test_code_is_left_alone():
    text = "```python\nx = '{ref}`a-sum`'\n:::{note}\n```"
    assert convert(text, PAGE) == text


def test_a_code_block_loses_its_options():
    assert convert("```{code-block} python\n:linenos:\nx = 1\n```", PAGE) == (
        "```python\nx = 1\n```"
    )


def test_what_only_the_site_can_show_says_where_it_is():
    text = convert("```{exhibit} sandbox\n```", PAGE)
    assert "sandbox" in text
    assert "https://x.org/book/start/b.html" in text


def test_a_site_without_an_address_leaves_words():
    assert convert("{ref}`a-sum`", Surroundings("b")) == "a-sum"
