"""Tables of computed values."""

import pytest

from pallas_rungs.figures.tables import table
from pallas_rungs.performance.provenance import MIME


def test_cells_are_escaped_and_backticks_become_code():
    shown = table(["`a`"], [["x < y & `f(z)`"]])._repr_html_()
    assert '<th scope="col"><code>a</code></th>' in shown
    assert "<td>x &lt; y &amp; <code>f(z)</code></td>" in shown


def test_the_plain_form_lines_up():
    assert repr(table(["n", "square"], [(2, 4), (10, 100)])).splitlines() == [
        "n   square",
        "2   4",
        "10  100",
    ]


def test_a_short_row_is_named():
    with pytest.raises(ValueError, match="row 2 of the table has 1 cells and there are 2"):
        table(["a", "b"], [(1, 2), (3,)])


def test_a_corner_without_words_is_no_heading():
    drawn = table(["", "passed"], [["trace", "yes"]])
    assert drawn.markup.startswith("<table><thead><tr><td></td><th")
    assert drawn.markup.count("<th ") == 1


def test_a_long_name_is_broken_between_its_words_only():
    drawn = table(["`a_b`"], [["`Mode.ONE|TWO_x` and snake_case"]])
    assert "<code>a_<wbr>b</code>" in drawn.markup
    assert "<code>Mode.<wbr>ONE|<wbr>TWO_<wbr>x</code> and snake_case" in drawn.markup


def test_constants_of_chips_say_where_they_come_from():
    drawn = table(["HBM, GB/s"], [("819",)], source="a data sheet")
    assert repr(drawn).splitlines()[-1] == ("Constants of chips, not measured here: a data sheet.")
    bundle = drawn._repr_mimebundle_()
    assert "not measured here: a data sheet." in bundle["text/html"]
    assert bundle[MIME] == [{"kind": "constants", "source": "a data sheet"}]
    assert MIME not in table(["a"], [(1,)])._repr_mimebundle_()
