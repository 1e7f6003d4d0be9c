"""The front matter of a chapter in a small book."""

NOTEBOOK = """\
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
"""
"""Without these keys the cells of a page are not executed."""

HEAD = f"---\n{NOTEBOOK}---\n\n"
"""Of a page that is read and not built."""


def front_matter(
    *, covers: str = "", needs: str = "", rungs: str = "", minutes: int | str = 1, more: str = ""
) -> str:
    """Front matter with the keys that the book asks for; `more` is lines of other keys."""
    keys = f"covers: [{covers}]\nneeds: [{needs}]\nrungs: [{rungs}]\nminutes: {minutes}\n"
    return f"---\n{NOTEBOOK}{keys}{more}---\n\n"
