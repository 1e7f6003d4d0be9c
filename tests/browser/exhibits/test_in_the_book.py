"""Every exhibit on the built site: alive from disk, at 360 px, and clean for axe in both themes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pallas_rungs.exhibits import MODULES


@pytest.fixture(scope="module")
def built(root) -> Path:
    folder = Path(os.environ.get("PALLAS_RUNGS_SITE") or root / "_build" / "html")
    if not (folder / "index.html").is_file():
        pytest.fail(f"no site in {folder}: `make book` builds it", pytrace=False)
    return folder


@pytest.fixture(scope="module")
def places(built) -> dict[str, list[Path]]:
    """Exhibit name -> pages that hold it."""
    pages = [(path, path.read_text("utf-8")) for path in sorted(built.rglob("*.html"))]
    return {name: [path for path, text in pages if f"<{name} " in text] for name in MODULES}


def test_each_exhibit_is_in_a_chapter_and_only_those_pages_load_the_script(built, places):
    assert {name: len(found) for name, found in places.items() if not found} == {}
    with_exhibit = {path for found in places.values() for path in found}
    loading = {
        path
        for path in built.rglob("*.html")
        if re.search(r'src="[^"]*exhibits\.js', path.read_text("utf-8"))
    }
    assert loading == with_exhibit


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("name", MODULES)
def test_alive_in_its_chapter(browser, root, places, name, width, scheme):
    for path in places[name]:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
        page.goto(path.as_uri())
        assert page.locator(f"{name} output").inner_text()
        assert page.locator(".pr-exhibit-sentence").count() == 0
        box = page.locator(".pr-exhibit").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        wide = "e => e.scrollWidth > e.clientWidth"
        assert not page.locator(".pr-bs").evaluate(wide)
        page.evaluate((root / "exhibits/node_modules/axe-core/axe.min.js").read_text())
        found = page.evaluate("axe.run('.pr-exhibit', {preload: false})")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
        assert errors == []
        context.close()
