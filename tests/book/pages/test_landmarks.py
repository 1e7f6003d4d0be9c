"""Regions of a page that would share a name are told apart by a number."""

import re

from pallas_rungs.book.landmarks import distinct
from pallas_rungs.figures import table


def labels(body: str) -> list[str]:
    return re.findall(r'aria-label="([^"]*)"', body)


def test_tables_with_the_same_headings_are_told_apart():
    same = table(["chip", "time"], [("v5e", 1)])._repr_html_()
    other = table(["chip"], [("v5e",)])._repr_html_()
    assert labels(distinct(same + other + same + same)) == [
        "Table: chip, time",
        "Table: chip",
        "Table: chip, time, table 2 of these",
        "Table: chip, time, table 3 of these",
    ]


def test_nothing_else_of_a_page_changes():
    body = '<a aria-label="Table: chip">x</a>' + table(["chip"], [("v5e",)])._repr_html_()
    assert distinct(body) == body
