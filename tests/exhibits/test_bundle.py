"""The bundled script: made when something changed, otherwise left; light; nothing foreign in it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from pallas_rungs.book.exhibits import exhibit_html
from pallas_rungs.exhibits import MODULES, bundle, exhibit_named

LEAST_ROOM = {"script": 40_000, "data": 60_000}
"""Bytes gzipped that all exhibits' script, and one page's data, may weigh."""


@pytest.fixture(scope="module")
def sources(root, node, tmp_path_factory) -> Path:
    """A copy of the JavaScript sources whose packages are the checkout's own."""
    bundle.bundle(root / "exhibits")
    folder = tmp_path_factory.mktemp("sources") / "exhibits"
    shutil.copytree(
        root / "exhibits", folder, ignore=shutil.ignore_patterns("node_modules", "dist")
    )
    (folder / "node_modules").symlink_to(root / "exhibits" / "node_modules")
    return folder


def test_no_change_no_work_and_a_change_is_seen(sources):
    first = bundle.bundle(sources)
    assert first.fresh
    script = first.folder / bundle.SCRIPT
    content = script.read_bytes()
    assert not bundle.bundle(sources).fresh

    source = sources / "src" / "logic" / "text.js"
    text = source.read_text()
    source.write_text(text.replace("'GiB'", "'gib'"))
    assert bundle.bundle(sources).fresh
    assert script.read_bytes() != content
    source.write_text(text)
    assert bundle.bundle(sources).fresh
    assert script.read_bytes() == content, "the same sources must give the same bytes"

    script.write_bytes(content + b"//")
    assert bundle.bundle(sources).fresh, "a script that is not the manifest's must be made anew"


def test_without_node_there_is_no_script_and_one_line_says_so(sources, tmp_path, monkeypatch):
    folder = tmp_path / "exhibits"
    shutil.copytree(sources, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    made = bundle.bundle(folder)
    assert made.folder is None
    assert "Node and npm are not installed" in made.message
    assert "\n" not in made.message


def test_broken_source_is_named(sources, tmp_path):
    folder = tmp_path / "exhibits"
    shutil.copytree(sources, folder, symlinks=True, ignore=shutil.ignore_patterns("dist"))
    (folder / "src" / "index.js").write_text("import './missing.js';")
    with pytest.raises(bundle.BundleError, match=r"(?s)esbuild.*missing\.js"):
        bundle.bundle(folder)


def test_manifest_tells_versions_licences_and_the_hash(root, node):
    made = bundle.bundle(root / "exhibits")
    manifest = json.loads((made.folder / bundle.MANIFEST).read_text())
    script = (made.folder / bundle.SCRIPT).read_bytes()
    assert manifest["script"]["sha256"] == hashlib.sha256(script).hexdigest()
    lit = manifest["packages"]["lit-html"]
    assert lit == {"version": "3.3.3", "licence": "BSD-3-Clause", "shipped": True}
    assert b"BSD-3-Clause" in script, "the licence notice of shipped code stays in it"


def test_weights(root, node):
    made = bundle.bundle(root / "exhibits")
    script = (made.folder / bundle.SCRIPT).read_bytes()
    assert len(gzip.compress(script)) <= LEAST_ROOM["script"]
    for name in MODULES:
        page = exhibit_html(exhibit_named(name)).encode()
        assert len(gzip.compress(page)) <= LEAST_ROOM["data"]


def test_script_and_lock_name_no_host(root, node):
    made = bundle.bundle(root / "exhibits")
    script = (made.folder / bundle.SCRIPT).read_text()
    # The SVG and XLink name spaces are names, not addresses that are loaded.
    hosts = set(re.findall(r"https?://([\w.-]+)", script)) - {"www.w3.org"}
    assert hosts == set()
    lock = json.loads((root / "exhibits" / "package-lock.json").read_text())
    assert [name for name, entry in lock["packages"].items() if "resolved" in entry] == []
    installed = [entry for name, entry in lock["packages"].items() if name]
    assert installed
    assert all(entry["integrity"].startswith("sha512-") for entry in installed)


def test_page_data_cannot_end_its_script_early():
    for name in MODULES:
        page = exhibit_html(exhibit_named(name))
        data = page.partition('class="pr-exhibit-data">')[2].partition("</script>")[0]
        assert "<" not in data
        assert set(json.loads(data)) == {"setting", "data"}
