"""Excerpts: true lines of the installed file, and a clear error when upstream has moved on."""

import ast
import importlib.metadata
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jax._src.pallas.core as pallas_core
import pytest

from pallas_rungs.walk import ExcerptError, Note, excerpt

CORE = "jax._src.pallas.core"
INSTALLED = Path(pallas_core.__file__).read_text().splitlines()

SOURCE = """
class Block:
    @property
    def start(self):
        size = self.size
        return self.index * size

    def stop(self):
        return self.start + self.size


def stop():
    match kind():
        case Whole():
            return 0
        case Part(size):
            return (size
                    * 2)


LIMIT = 3
"""


def test_lines_are_those_of_the_installed_file():
    drawn = excerpt(CORE, "BlockMapping.compute_start_indices_interpret")
    assert len(drawn.lines) > 10
    for number, text in drawn.lines:
        assert INSTALLED[number - 1] == text
    assert "def compute_start_indices_interpret" in drawn.lines[0][1]


def test_a_nested_function_is_found_by_its_name_alone():
    drawn = excerpt(CORE, "_get_start_index")
    assert drawn.symbol == "BlockMapping.compute_start_indices_interpret._get_start_index"
    assert "return block_size * i" in str(drawn)


def test_the_rule_of_block_starts_stands_in_the_installed_source():
    drawn = excerpt(
        CORE,
        "_get_start_index",
        notes=[Note("return block_size * i", "index times size"), Note("@case:Squeezed", "as is")],
    )
    lines = dict(drawn.lines)
    first, second = drawn.notes
    assert (first.note.text, second.note.text) == ("as is", "index times size")
    assert "case Squeezed() | Element():" in lines[first.span.first]
    assert lines[second.span.first].strip() == "return block_size * i"


def test_the_module_is_not_imported():
    code = (
        f"import sys; from pallas_rungs.walk import excerpt; excerpt({CORE!r}, 'BlockDim');"
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_version_licence_and_link_of_jax():
    version = importlib.metadata.version("jax")
    drawn = excerpt(CORE, "_get_start_index")
    first, last = drawn.lines[0][0], drawn.lines[-1][0]
    assert drawn.origin.version == version
    assert drawn.permalink == (
        f"https://github.com/jax-ml/jax/blob/jax-v{version}/jax/_src/pallas/core.py"
        f"#L{first}-L{last}"
    )
    html = drawn._repr_html_()
    assert f"From the installed jax {version}" in html
    assert "Licence: Apache-2.0 (Copyright 2023 The JAX Authors)." in html


def test_decorators_belong_to_the_symbol(package):
    drawn = excerpt(package(SOURCE).module, "Block.start")
    assert [text.strip() for _, text in drawn.lines][:2] == ["@property", "def start(self):"]


def test_a_top_level_name_wins_over_a_nested_one(package):
    assert excerpt(package(SOURCE).module, "stop").symbol == "stop"
    assert excerpt(package(SOURCE).module, "Block.stop").symbol == "Block.stop"


def test_assignments_and_aliases_are_symbols(package):
    assert str(excerpt(package(SOURCE).module, "LIMIT")).endswith("LIMIT = 3")
    assert "Element" in str(excerpt(CORE, "BlockDim"))


def test_a_passage_between_anchors(package):
    drawn = excerpt(package(SOURCE).module, "stop", start="case Whole()", end="@case:Part")
    assert [text.strip() for _, text in drawn.lines] == [
        "case Whole():",
        "return 0",
        "case Part(size):",
        "return (size",
        "* 2)",
    ]


def test_a_text_anchor_matches_across_rewrapped_lines(package):
    drawn = excerpt(package(SOURCE).module, "stop", notes=[Note("return (size * 2)", "twice")])
    assert drawn.notes[0].span.last == drawn.notes[0].span.first + 1


@pytest.mark.parametrize(
    ("symbol", "options", "said"),
    [
        ("Gone", {}, "symbol 'Gone' is gone"),
        ("start", {"end": "size"}, "end anchor 'size' is ambiguous: 3 places"),
        ("stop", {"start": "@for"}, "start anchor '@for' is gone"),
        ("stop", {"end": "@return"}, "end anchor '@return' is ambiguous"),
        ("stop", {"notes": [Note("return 1", "x")]}, "note anchor 'return 1' is gone"),
        ("stop", {"notes": [Note("return", "x")]}, "note anchor 'return' is ambiguous"),
        ("Block.start", {"notes": [Note("LIMIT", "x")]}, "note anchor 'LIMIT' is gone"),
    ],
)
def test_what_is_gone_or_ambiguous_is_named(package, symbol, options, said):
    made = package(SOURCE)
    with pytest.raises(ExcerptError) as caught:
        excerpt(made.module, symbol, **options)
    message = str(caught.value)
    assert said in message
    assert f"{made.name} 1.2.3, module {made.module}" in message
    if "anchor" in said:
        assert "symbol " in message


def test_a_note_outside_the_passage_is_gone(package):
    with pytest.raises(ExcerptError, match="note anchor 'return 0' is gone"):
        excerpt(package(SOURCE).module, "stop", start="@case:Part", notes=[Note("return 0", "x")])


def test_upstream_changes_and_the_excerpt_fails(package):
    made = package(SOURCE)
    notes = [Note("self.index * size", "the rule")]
    before = excerpt(made.module, "Block.start", notes=notes)
    made.write(SOURCE.replace("self.index * size", "offset(self)"), version="2.0")
    with pytest.raises(ExcerptError, match=r" 2\.0, module .*self\.index \* size"):
        excerpt(made.module, "Block.start", notes=notes)
    made.write("\n\n" + SOURCE, version="1.2.4")
    after = excerpt(made.module, "Block.start", notes=notes)
    assert after.span.first == before.span.first + 2
    assert after.origin.digest != before.origin.digest


def test_two_definitions_are_ambiguous(package):
    made = package("if x:\n    def f(): pass\nelse:\n    def f(): pass\n")
    with pytest.raises(ExcerptError, match=r"symbol 'f' is ambiguous: 2 definitions match"):
        excerpt(made.module, "f")


def test_a_signature_under_overload_is_no_definition(package):
    made = package(
        "@overload\ndef f(x: int): ...\n@typing.overload\ndef f(x): ...\ndef f(x):\n    g(x)\n"
    )
    drawn = excerpt(made.module, "f")
    assert [text.strip() for _, text in drawn.lines] == ["def f(x):", "g(x)"]


def test_missing_package_module_and_licence(package):
    with pytest.raises(ExcerptError, match="package 'nowhere_at_all' is not installed"):
        excerpt("nowhere_at_all.core", "f")
    with pytest.raises(ExcerptError, match="has no such source file"):
        excerpt("jax._src.pallas.no_such_module", "f")
    with pytest.raises(ExcerptError, match="names a licence"):
        excerpt(package("f = 1\n", licence="").module, "f")
    with pytest.raises(ExcerptError, match="belongs to no installed distribution"):
        excerpt("ast", "parse")


def test_notes_are_of_two_kinds_and_have_text():
    with pytest.raises(ExcerptError, match="kind 'style'; a note is one of: algorithm, schedule"):
        Note("x", "text", "style")
    with pytest.raises(ExcerptError, match="has no text"):
        Note("x", "  ")


def test_markup_links_marks_and_notes_both_ways(package):
    drawn = excerpt(
        package(SOURCE).module,
        "stop",
        notes=[Note("return 0", "`0` & *more*"), Note("@case:Part", "when", "schedule")],
    )
    root = ET.fromstring(drawn._repr_html_())
    ids = {e.get("id") for e in root.iter() if e.get("id")}
    links = [e.get("href") for e in root.iter("a") if e.get("href", "").startswith("#")]
    assert len(links) == 4
    assert {link[1:] for link in links} <= ids
    assert [e.get("class") for e in root.iter("li")] == [
        "pr-note pr-note-algorithm",
        "pr-note pr-note-schedule",
    ]
    assert "<code>0</code> &amp; <em>more</em>" in drawn._repr_html_()


def test_markup_shows_the_code_unchanged_but_for_shared_indentation():
    drawn = excerpt(CORE, "_get_start_index")
    root = ET.fromstring(drawn._repr_html_())
    shown = []
    for line in root.iter("span"):
        if line.get("data-line") is None:
            continue
        gutter = "".join(line.find("span").itertext())
        text = "".join(line.itertext())[len(gutter) :].rstrip("\n")
        assert INSTALLED[int(line.get("data-line")) - 1].endswith(text)
        assert gutter.strip() == line.get("data-line")
        shown.append(text)
    assert shown[0] == "def _get_start_index(i, b):"
    ast.parse("\n".join(shown))


def test_a_role_in_a_note_is_refused(package):
    drawn = excerpt(package(SOURCE).module, "stop", notes=[Note("return 0", "a {term}`block`")])
    with pytest.raises(ExcerptError, match="roles do not work there"):
        drawn._repr_html_()


@pytest.mark.parametrize("target", ["rule-tables.md", "../start/edges.md#masks", "#below"])
def test_a_link_to_a_page_in_a_note_is_refused(package, target):
    drawn = excerpt(
        package(SOURCE).module, "stop", notes=[Note("return 0", f"see [there]({target})")]
    )
    with pytest.raises(ExcerptError, match=r"links to .*only links to web addresses"):
        drawn._repr_html_()


def test_a_link_to_an_address_in_a_note_is_kept(package):
    note = Note("return 0", "see [there](https://example.org/a?b=1&c=2)")
    assert (
        'href="https://example.org/a?b=1&amp;c=2"'
        in excerpt(package(SOURCE).module, "stop", notes=[note])._repr_html_()
    )
