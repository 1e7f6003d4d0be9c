"""The JavaScript keeps its layers: logic is pure, elements hold no arithmetic of their own."""

from __future__ import annotations

import re

import pytest

from pallas_rungs.exhibits import MODULES

PAGE_WORDS = re.compile(
    r"\b(document|globalThis|location|history|HTMLElement|customElements|localStorage|fetch|navigator)\b"
)


def code_of(path):
    """The source without its comments and strings."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
    return re.sub(r"'[^'\n]*'|`[^`]*`", "''", text)


def imports_of(path):
    return re.findall(r"^\s*(?:import|export)\b[^;]*?from\s+'([^']+)'", path.read_text(), re.M)


@pytest.fixture(scope="module")
def logic(root):
    found = sorted((root / "exhibits" / "src" / "logic").glob("*.js"))
    assert len(found) >= 3
    return found


def test_logic_never_touches_the_page(logic):
    touched = {
        path.name: PAGE_WORDS.findall(code_of(path))
        for path in logic
        if PAGE_WORDS.search(code_of(path))
    }
    assert touched == {}


def test_logic_imports_logic_only(logic):
    for path in logic:
        for name in imports_of(path):
            assert name.startswith("./"), f"{path.name} imports {name}"


def test_each_exhibit_has_logic_and_element(root):
    for name in MODULES:
        source = root / "exhibits" / "src"
        assert "export function derive(" in (source / "logic" / f"{name}.js").read_text()
        element = (source / "elements" / f"{name}.js").read_text()
        assert f"customElements.define('{name}'" in element
        assert f"./elements/{name}.js" in (source / "index.js").read_text()
