"""The `exhibit` directive in small Sphinx projects."""

from __future__ import annotations

import io
import shutil

import pytest
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace, patch_docutils


def build(folder, text, builder="html"):
    """Build one page and return (output folder, what Sphinx said, its warnings)."""
    source = folder / "source"
    source.mkdir(exist_ok=True)
    (source / "conf.py").write_text(
        'extensions = ["pallas_rungs.book.exhibits"]\nhtml_theme = "basic"\n'
        'epub_show_urls = "no"\nversion = "1"\nhtml_sidebars = {"**": []}\n'
    )
    (source / "index.rst").write_text(f"Page\n====\n\n{text}\n")
    status, warning = io.StringIO(), io.StringIO()
    out = folder / builder
    with patch_docutils(source), docutils_namespace():
        app = Sphinx(
            source, source, out, folder / "doctrees", builder, status=status, warning=warning
        )
        app.build()
    return out, status.getvalue(), warning.getvalue()


ONE = ".. exhibit:: blockspec-sandbox\n\n   A caption with <signs> & such."


def test_page_gets_element_data_and_script(tmp_path, node):
    out, _, warnings = build(tmp_path, ONE)
    page = (out / "index.html").read_text()
    assert warnings == ""
    assert page.count("<blockspec-sandbox ") == 1
    assert "A caption with &lt;signs&gt; &amp; such." in page
    assert 'defer="defer" src="_static/exhibits.js' in page
    assert "pr-exhibits.css" in page
    assert "pr-ex-live" in page
    assert (out / "_static" / "exhibits.js").is_file()


def test_without_node_the_build_is_clean_and_the_picture_is_there(tmp_path, monkeypatch):
    from pallas_rungs.exhibits import bundle

    empty = tmp_path / "exhibits"
    (empty / "src").mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        (empty / name).write_text("{}")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(bundle, "exhibits_folder", lambda: empty)
    out, status, warnings = build(tmp_path, ONE)
    page = (out / "index.html").read_text()
    assert warnings == ""
    assert status.count("Node and npm are not installed") == 1
    assert "exhibits.js" not in page
    assert "pr-ex-live" not in page
    assert "<svg" in page
    assert "pr-exhibits.css" in page


@pytest.mark.parametrize("builder", ["text", "latex", "man"])
def test_other_formats_get_the_sentence(tmp_path, builder):
    out, _, warnings = build(tmp_path, ONE, builder)
    assert warnings == ""
    (written,) = [path for path in out.iterdir() if path.suffix in {".txt", ".tex", ".1"}]
    assert "8 of 12, starts at" in " ".join(written.read_text().split())


def test_epub_gets_sentence_and_picture(tmp_path):
    out, _, _ = build(tmp_path, ONE, "epub")
    page = (out / "index.xhtml").read_text()
    assert "8 of 12, starts at" in page
    assert "<svg" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".. exhibit:: blockspec-sandbax", r"index\.rst:4: unknown exhibit 'blockspec-sandbax'"),
        (f"{ONE}\n\n.. exhibit:: blockspec-sandbox", r"index\.rst:8: .* already on this page"),
    ],
)
def test_mistakes_name_their_place(tmp_path, text, message):
    with pytest.raises(ExtensionError, match=message):
        build(tmp_path, text)
