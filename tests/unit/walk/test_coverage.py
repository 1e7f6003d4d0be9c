"""The account of a whole file: every line in one class, what is left named, lost anchors named."""

from pathlib import Path

import jax._src.pallas.pallas_call as upstream
import pytest

from pallas_rungs.figures.file_account import file_account
from pallas_rungs.walk import ExcerptError, Fold, Passage, Skip, whole_file
from pallas_rungs.walk.coverage import CLASSES

CALL = "jax._src.pallas.pallas_call"

# Two lines of licence stand above it.
SOURCE = '''
"""What the module does,

in three lines."""
from __future__ import annotations
from a import (
    b,
)

try:
    import c
except ImportError:
    c = None
try:
    import d
except ImportError:
    pass

LIMIT = 3
REGISTER = {}


@decorated
def first(x):
    """Words.

    More words.
    """
    # A remark.
    y = x + 1

    return y


REGISTER["first"] = first


def second(x):
    def inner():
        return x

    # A remark.
    z = inner()
    return z


class Third:
    def method(self):
        return 1
'''


def lines(account, name):
    return [n for n, found in enumerate(account.classes, 1) if found == name]


def numbers(account, *texts):
    source = account.origin.source.splitlines()
    return [source.index(text) + 1 for text in texts]


def test_every_line_is_in_one_class(package):
    account = whole_file(package(SOURCE).module, [])
    assert len(account.classes) == len(account.origin.source.splitlines())
    assert sum(account.counts.values()) == len(account.classes)
    assert tuple(account.counts) == CLASSES


def test_blank_lines_comments_docstring_and_imports_count_by_themselves(package):
    account = whole_file(package(SOURCE).module, [Passage("first")])
    source = account.origin.source.splitlines()
    blank = [source[n - 1] for n in lines(account, "blank, comments")]
    assert blank.count("") == source.count("") - 1  # one stands in a docstring, and is code
    assert {line.strip() for line in blank} - {""} == {
        "# Copyright 2024 The Authors.",
        "# SPDX-License-Identifier: MIT",
        '"""What the module does,',
        'in three lines."""',
        "# A remark.",
    }
    assert [source[n - 1] for n in lines(account, "imports")] == [
        "from __future__ import annotations",
        "from a import (",
        "    b,",
        ")",
        "try:",
        "    import d",
        "except ImportError:",
        "    pass",
    ]
    assert "    import c" not in [source[n - 1] for n in lines(account, "imports")]


def test_a_condition_is_an_import_only_if_it_does_nothing_else(package):
    made = package("if a:\n    import b\nelse:\n    from c import b\nif a:\n    LIMIT = 3\n")
    assert whole_file(made.module, []).counts["imports"] == 4
    assert whole_file(made.module, []).counts["unaccounted"] == 2


def test_an_explained_passage_has_its_lines_of_code_and_no_other(package):
    account = whole_file(package(SOURCE).module, [Passage("first", start="# A remark.")])
    assert lines(account, "explained") == numbers(account, "    y = x + 1", "    return y")
    (part,) = account.explained
    assert (part.lines, len(part.spans)) == (2, 1)


def test_explained_goes_before_folded_and_folded_before_skipped(package):
    account = whole_file(
        package(SOURCE).module,
        [Passage("second", start="z = inner()")],
        [Fold("second", "It calls.", start="def inner", end="z = inner()")],
        [Skip("second", "It is dull.")],
    )
    assert lines(account, "explained") == numbers(account, "    z = inner()", "    return z")
    assert lines(account, "folded") == numbers(account, "    def inner():", "        return x")
    assert lines(account, "skipped") == numbers(account, "def second(x):")


def test_the_order_in_which_they_are_given_does_not_matter(package):
    made = package(SOURCE)
    one, two = Fold("first", "a"), Fold("second", "b")
    there = whole_file(made.module, [], [one, two])
    back = whole_file(made.module, [], [two, one])
    assert there.classes == back.classes
    assert there.rows() == back.rows()


def test_the_share_is_of_all_lines(package):
    account = whole_file(package("a = 1\nb = 2\n\n\n").module, [Passage("a")])
    assert account.counts["blank, comments"] == 4
    assert account.share == pytest.approx(5 / 6)
    assert account.share_of("explained", "unaccounted") == pytest.approx(2 / 6)
    with pytest.raises(KeyError, match="proved"):
        account.share_of("proved")


def test_unaccounted_lines_are_named_with_their_symbols(package):
    account = whole_file(package(SOURCE).module, [Passage("first")])
    assert [(left.symbol, left.lines) for left in account.unaccounted] == [
        ("<module>", 6),  # the import with a fallback, and the two names
        ("<module>", 1),
        ("second", 5),
        ("Third", 3),
    ]
    assert "unaccounted: lines" in str(account)
    assert str(account.unaccounted[1]) == "line 37 of <module>"


def test_a_gap_inside_a_nested_function_has_its_dotted_name(package):
    around = [
        Passage("second", end="def inner"),
        Passage("second", start="z = inner()"),
    ]
    account = whole_file(package(SOURCE).module, around)
    assert "second.inner" in {left.symbol for left in account.unaccounted}


def test_statements_of_the_module_are_reached_by_an_anchor(package):
    made = package(SOURCE)
    account = whole_file(made.module, [], [Fold("<module>", "Registered.", start='REGISTER["')])
    assert lines(account, "folded") == numbers(account, 'REGISTER["first"] = first')
    account = whole_file(
        made.module, [], [Fold("<module>", "Names.", start="LIMIT = 3", end="REGISTER = {}")]
    )
    assert len(lines(account, "folded")) == 2
    with pytest.raises(ExcerptError, match="a passage of <module> has no start anchor"):
        whole_file(made.module, [Passage("<module>")])


def test_rows_stand_in_the_order_of_the_file(package):
    account = whole_file(
        package(SOURCE).module,
        [Passage("second", start="def inner", end="return x")],
        [Fold("Third", "A class."), Fold("second", "Two lines around a function.")],
        [Skip("first", "Arithmetic.")],
    )
    assert account.rows() == [
        ("skipped: `first`, 25–34 (8)", "Arithmetic."),
        ("folded: `second`, 40, 45–46 (3)", "Two lines around a function."),
        ("folded: `Third`, 49–51 (3)", "A class."),
    ]


def test_statements_that_share_their_words_are_one_row(package):
    account = whole_file(
        package(SOURCE).module,
        [],
        [
            Fold("<module>", "Names.", start='REGISTER["'),
            Fold("Third", "Names."),
            Fold("<module>", "Names.", start="LIMIT = 3"),
        ],
    )
    assert account.rows() == [
        ("folded: `<module>`, 21, 37 (2)", "Names."),
        ("folded: `Third`, 49–51 (3)", "Names."),
    ]


@pytest.mark.parametrize(
    ("folds", "skips", "said"),
    [
        ([Fold("first", " ")], [], "symbol first: the fold has no sentence"),
        ([], [Skip("first", "")], "symbol first: the skip has no reason"),
        ([Fold("second", "a")], [Skip("inner", "b")], "the skip of lines 41–42 accounts for no"),
        ([Fold("Gone", "a")], [], "symbol 'Gone' is gone"),
        ([Fold("first", "a", start="y = 2")], [], "fold start anchor 'y = 2' is gone"),
        ([], [Skip("first", "a", end="y")], "skip end anchor 'y' is ambiguous"),
    ],
)
def test_a_part_that_says_or_counts_nothing_is_refused(package, folds, skips, said):
    made = package(SOURCE)
    with pytest.raises(ExcerptError) as caught:
        whole_file(made.module, [], folds, skips)
    assert said in str(caught.value)
    assert f"{made.name} 1.2.3, module {made.module}" in str(caught.value)


# An upstream file, copied and edited.

DRAWN = [
    Passage("_pallas_call_lowering"),
    Passage("_batch_block_mapping", start="shape = block_mapping.block_shape"),
]
FOLDS = [Fold("_pallas_call_jvp_rule", "The tangents.", start="if input_output_aliases:")]


def test_the_account_of_the_installed_file_is_that_of_a_copy_moved_down(package):
    source = Path(upstream.__file__).read_text()
    there = whole_file(CALL, DRAWN, FOLDS)
    copy = whole_file(package("\n\n\n" + source, version="9").module, DRAWN, FOLDS)
    for name in ("explained", "folded", "imports", "unaccounted"):
        assert copy.counts[name] == there.counts[name]
    shift = copy.parts[0][1].first - there.parts[0][1].first
    assert shift == 5
    assert [left.span.first - shift for left in copy.unaccounted] == [
        left.span.first for left in there.unaccounted
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("if input_output_aliases:", "if aliases:", "fold start anchor 'if input_output_aliases:'"),
        (
            "shape = block_mapping.block_shape",
            "shape = ()",
            "passage start anchor 'shape = block_mapping",
        ),
        ("def _pallas_call_lowering", "def _lowering", "symbol '_pallas_call_lowering' is gone"),
    ],
)
def test_an_edited_copy_names_the_anchor_that_it_lost(package, old, new, said):
    source = Path(upstream.__file__).read_text()
    assert old in source
    made = package(source.replace(old, new), version="9.9")
    with pytest.raises(ExcerptError) as caught:
        whole_file(made.module, DRAWN, FOLDS)
    assert said in str(caught.value)
    assert f"{made.name} 9.9, module {made.module}" in str(caught.value)


def test_a_function_added_upstream_is_unaccounted_by_its_name(package):
    source = Path(upstream.__file__).read_text()
    added = source.replace(
        "def _pallas_call_lowering", "def _new_rule(x):\n  return x\n\n\ndef _pallas_call_lowering"
    )
    before = whole_file(CALL, DRAWN, FOLDS)
    after = whole_file(package(added).module, DRAWN, FOLDS)
    assert {left.symbol for left in after.unaccounted} - {
        left.symbol for left in before.unaccounted
    } == {"_new_rule"}


def test_the_figure_knows_the_classes_of_the_account(package):
    account = whole_file(package(SOURCE).module, [Passage("first")], [Fold("second", "It calls.")])
    parts = [(name, span.first, span.last) for name, span in account.parts]
    drawn = file_account(account.classes, parts, title="A file", alt="a file")
    assert [name for _, name in drawn.key if name.startswith("unaccounted")]
    file_account(CLASSES, [], title="All", alt="all")
