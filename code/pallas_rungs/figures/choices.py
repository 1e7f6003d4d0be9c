"""A choice above a table: radio buttons whose choice hides rows, by style sheet and no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

CHOICES_CSS: Final = (
    ".pr-figure .pr-filter{border:0;margin:0 0 .8rem;padding:0;display:flex;flex-wrap:wrap;"
    "gap:.35rem .5rem;font:400 .93rem/1.4 var(--f-sans)}"
    ".pr-figure .pr-filter legend{padding:0 0 .3rem;font-weight:600}"
    ".pr-figure .pr-filter label{display:inline-flex;gap:.35rem;align-items:center;"
    "padding:.25rem .65rem;border:1px solid var(--f-strong);border-radius:1rem;cursor:pointer}"
    ".pr-figure .pr-filter label:has(:checked){background:var(--f-quiet-bg);font-weight:600}"
)
"""The style of every fieldset."""


@dataclass(frozen=True)
class Option:
    """One button.

    Attributes:
        value: of the button, unique in its fieldset.
        label: its words.
        count: how many rows it leaves.
    """

    value: str
    label: str
    count: int


def fieldset(name: str, legend: str, options: Sequence[Option]) -> str:
    """A fieldset of radio buttons; the first is chosen.

    Args:
        name: of the buttons, unique on the page.
        legend: the question that they answer.
        options: at least one.

    Raises:
        ValueError: there are no options, or two have one value.
    """
    values = [option.value for option in options]
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{legend!r} needs options with different values, and has {values}")
    labels = "".join(
        f'<label><input type="radio" name="{escape(name)}" value="{escape(option.value)}"'
        f"{' checked' if option is options[0] else ''}> {escape(option.label)} "
        f"({option.count})</label>"
        for option in options
    )
    return f'<fieldset class="pr-filter"><legend>{escape(legend)}</legend>{labels}</fieldset>'
