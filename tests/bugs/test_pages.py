"""The museum's rooms: a section for every bug, where its symptom says, in one form for all."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from pallas_rungs import bugs
from pallas_rungs.bugs import GROUPS, MUSEUM

ROOMS = sorted(set(GROUPS.values()))
SECTION = re.compile(r"^\((bug-[a-z0-9-]+)\)=\n### .+\n(?P<body>(?:(?!^\(bug-|^#).*\n)*)", re.M)

each_bug = pytest.mark.parametrize("bug", MUSEUM, ids=bugs.name)


def sections(root: Path, room: str) -> dict[str, str]:
    text = (root / "book" / "evidence" / f"{room}.md").read_text("utf8")
    return {found[1]: found["body"] for found in SECTION.finditer(text)}


@each_bug
def test_a_link_leads_to_the_section_of_its_bug(root: Path, bug: ModuleType) -> None:
    page, _, anchor = bugs.link(bug).partition(".html#")
    name = bugs.name(bug)
    body = sections(root, page)[anchor]
    for part in (f":source: bugs/{name}.py:", *(f"{f}(bugs.{name})" for f in PARTS)):
        assert part in body, f"{anchor} on {page} lacks {part}"


PARTS = ("placard", "cure", "as_recorded")


def test_no_room_has_a_section_of_no_bug(root: Path) -> None:
    shown = [anchor for room in ROOMS for anchor in sections(root, room)]
    assert sorted(shown) == sorted(bugs.anchor(bug) for bug in MUSEUM)


def test_a_room_is_ordered_as_the_museum_by_symptom(root: Path) -> None:
    for room in ROOMS:
        there = [g for g, page in GROUPS.items() if page == room]
        order = [bugs.anchor(bug) for group in there for bug in MUSEUM if group == bug.GROUP]
        assert list(sections(root, room)) == order


def test_every_room_is_in_the_book(root: Path) -> None:
    contents = (root / "_toc.yml").read_text("utf8")
    for page in ("the-bug-museum", *ROOMS):
        assert f"- file: book/evidence/{page}\n" in contents
