"""Drawing symbols out of files, and finding the names that a drawn symbol needs."""

import textwrap

import pytest

from pallas_rungs.book.sources import DrawingError, draw, free_names, import_lines, unmet_names

TEXT = '''\
"""A module."""

import functools
from math import floor, prod as product

from .near import thing

SIZE = 4  # a constant
first, second = 1, 2


# What it is for,
# in two lines.
@functools.cache
def decorated(x: int = SIZE) -> int:
    """A docstring."""
    # inside
    return product([x, first])

# not of the class

class Shape:
    """A shape."""

    # of the method
    @staticmethod
    def area(side):
        return floor(side) ** 2


def twice(x):
    SIZE = 3
    return x * SIZE


def twice(x):
    return 2 * x
'''


@pytest.fixture
def root(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "mod.py").write_text(TEXT, "utf8")
    (tmp_path / "pkg" / "bad.py").write_text("def f(:\n", "utf8")
    return tmp_path


def test_decorators_and_the_comments_right_above_are_drawn(root):
    (drawn,) = draw(root, "pkg/mod.py:decorated")
    assert drawn.text.startswith("# What it is for,\n# in two lines.\n@functools.cache\ndef dec")
    assert drawn.text.endswith("return product([x, first])")
    assert [line.number for line in drawn.lines] == list(range(12, 19))


def test_a_comment_apart_is_not_drawn(root):
    (drawn,) = draw(root, "pkg/mod.py:Shape")
    assert drawn.text.startswith("class Shape:")


def test_a_method_is_drawn_dedented(root):
    (drawn,) = draw(root, "pkg/mod.py:Shape.area")
    assert drawn.text == textwrap.dedent("""\
        # of the method
        @staticmethod
        def area(side):
            return floor(side) ** 2""")


def test_the_last_definition_counts(root):
    (drawn,) = draw(root, "pkg/mod.py:twice")
    assert drawn.text == "def twice(x):\n    return 2 * x"


@pytest.mark.parametrize("symbol", ["SIZE", "second"])
def test_assignments_can_be_drawn(root, symbol):
    (drawn,) = draw(root, f"pkg/mod.py:{symbol}")
    assert symbol in drawn.text
    assert len(drawn.lines) == 1


@pytest.mark.parametrize("option", ["pkg/mod.py:SIZE, twice", "pkg/mod.py:SIZE, pkg/mod.py:twice"])
def test_several_symbols(root, option):
    assert [drawn.symbol for drawn in draw(root, option)] == ["SIZE", "twice"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("pkg/mod.py:nothing", "no symbol nothing in pkg/mod.py"),
        ("pkg/mod.py:Shape.nothing", "no symbol Shape.nothing"),
        ("pkg/mod.py:twice.nothing", "no symbol twice.nothing"),
        ("pkg/other.py:twice", "no file pkg/other.py"),
        ("pkg/bad.py:f", "pkg/bad.py does not parse"),
        ("twice", "names no file and symbol"),
        ("pkg/mod.py:", "names no file and symbol"),
        ("pkg/mod.py:SIZE,,", "names no file and symbol"),
    ],
)
def test_what_cannot_be_drawn_is_named(root, option, message):
    with pytest.raises(DrawingError, match=message):
        draw(root, option)


def test_names_of_the_module_that_are_not_met(root):
    (drawn,) = draw(root, "pkg/mod.py:decorated")
    assert unmet_names(drawn, set()) == {"functools", "SIZE", "product", "first"}
    assert unmet_names(drawn, {"functools", "SIZE", "first"}) == {"product"}


def test_a_local_name_is_no_need():
    assert free_names("def f(a):\n    SIZE = 3\n    return len([SIZE * b for b in a])") == set()
    assert free_names("def f(a=SIZE):\n    return lambda b: b + OTHER") == {"SIZE", "OTHER"}


def test_imports_are_made_as_the_file_makes_them(root):
    (drawn,) = draw(root, "pkg/mod.py:decorated")
    assert import_lines(drawn, {"functools", "product", "SIZE", "thing"}, "pkg.mod") == [
        "import functools",
        "from math import prod as product",
        "from pkg.near import thing",
        "from pkg.mod import SIZE",
    ]


def test_docstrings_are_cut_down_to_their_summaries(tmp_path):
    (tmp_path / "kernel.py").write_text(
        "def call(x):\n"
        '    """Double x.\n'
        "\n"
        "    Args:\n"
        "        x: any array.\n"
        '    """\n'
        "    def kernel(x_ref):\n"
        '        """One line."""\n'
        "\n"
        "    return 2 * x\n"
    )
    (drawn,) = draw(tmp_path, "kernel.py:call")
    assert drawn.text.splitlines() == [
        "def call(x):",
        '    """Double x."""',
        "    def kernel(x_ref):",
        '        """One line."""',
        "",
        "    return 2 * x",
    ]
    assert [line.number for line in drawn.lines] == [1, 2, 7, 8, 9, 10]
