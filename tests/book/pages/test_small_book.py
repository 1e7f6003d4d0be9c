"""What a built page holds, and what makes a build fail."""

import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from nbclient import NotebookClient

from pallas_rungs.book.coverage_list import coverage_list
from pallas_rungs.book.notebook_export import colab_address

from .conftest import FIRST, ROOT, front

EXECUTED = ["book/part/first", "book/part/second"]


def links(html, css_class=""):
    return re.findall(rf'<a class="[^"]*{css_class}[^"]*" href="([^"]+)"', html)


# ---- claims


def test_every_claim_is_listed_with_a_link_to_its_place(built):
    index = built.page("book/claims")
    data = json.loads((built.site / "claims.json").read_text())
    claims = [entry for entry in data["claims"] if entry["kind"] == "claim"]
    assert [entry["claim"] for entry in claims] == [
        "One and one is `2`, & not *3*.",
        "Text is no number.",
        "Two and two is four.",
    ]
    for entry in data["claims"]:
        page, anchor = entry["url"].split("#")
        assert f'id="{anchor}"' in built.page(page.removesuffix(".html"))
        assert f'href="{page.removeprefix("book/")}#{anchor}"' in index


def test_claims_are_counted_by_rung(built):
    counts = json.loads((built.site / "claims.json").read_text())["counts"]
    assert (counts["trace"], counts["interpret"], counts["compile"], counts["total"]) == (
        1,
        2,
        0,
        3,
    )
    home = built.page("book/index")
    assert "It holds 3 claims, 2 of them interpreted." in home
    assert 'href="claims.html#claims-interpret">2</a>' in home


def test_a_claim_says_what_it_was_verified_with(built):
    entry = json.loads((built.site / "claims.json").read_text())["claims"][0]
    assert entry["versions"]["jax"]
    assert entry["rung"] == "interpret"
    assert entry["page"] == "book/part/first"


# ---- coverage


def test_every_item_stands_on_the_coverage_page(built):
    page = built.page("book/coverage")
    for item in coverage_list().items:
        assert f'id="{item.anchor}"' in page


def test_covered_items_link_to_their_pages_and_others_are_open(built):
    page = built.page("book/coverage")
    rows = dict(re.findall(r'<tr[^>]* id="(covers-[^"]+)">(.*?)</tr>', page, re.S))
    assert rows["covers-m-02"].count("<a ") == 2
    assert 'href="part/first.html"' in rows["covers-m-01"]
    assert "open" in rows["covers-m-03"]
    assert f"3 of {len(coverage_list().items)} are covered" in page


def test_the_coverage_file_says_the_same(built):
    data = json.loads((built.site / "coverage.json").read_text())
    items = {item["id"]: item for area in data["areas"] for item in area["items"]}
    assert data["covered"] == 3
    assert [page["page"] for page in items["M-02"]["pages"]] == EXECUTED
    assert items["T-08"]["prose"]


# ---- badge


def test_the_badge_tells_versions_rungs_time_needs_and_coverage(built):
    page = built.page("book/part/second")
    badge = page[page.index('<div class="pr-badge"') :][:2500]
    assert page.index("</h1>") < page.index('<div class="pr-badge"') < page.index("See <a")
    assert re.search(r"jax \d+\.\d+", badge)
    assert 'data-rung="interpret"' in badge
    assert "3 minutes" in badge
    assert 'after <a href="first.html">The first page</a>' in badge
    assert '<a href="../coverage.html#covers-t-08">T-08</a>' in badge
    assert "21 September 2026" in badge


# ---- pages


@pytest.mark.parametrize(
    "name", [*EXECUTED, "book/index", "book/claims", "book/coverage", "search"]
)
def test_a_page_loads_only_files_that_are_there_and_runs_nothing_inline(built, name):
    html = built.page(name)
    folder = (built.site / f"{name}.html").parent
    scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", html, re.S)
    assert scripts
    for attributes, inline in scripts:
        assert "src=" in attributes
        assert inline.strip() == ""
    loaded = re.findall(r'<script[^>]* src="([^"]+)"', html)
    loaded += re.findall(r'<link rel="(?:stylesheet|icon)"[^>]* href="([^"]+)"', html)
    assert len(loaded) <= (10 if name == "search" else 5)
    for url in loaded:
        assert (folder / url.split("?")[0]).is_file(), url


def test_a_formula_needs_no_script(built):
    html = built.page("book/part/first")
    assert html.count("<math ") == 2
    assert not re.search(r"<(script|link)[^>]*(mathjax|katex)", html, re.I)
    assert r'<annotation encoding="application/x-tex">\frac{M}{b_m}</annotation>' in html


def test_the_front_door_leads_to_the_landing_page(built):
    assert 'url=book/index.html"' in built.page("index")


# ---- notebooks


def notebook(book, name):
    return nbformat.read(book.site / "notebooks" / f"{name}.ipynb", as_version=4)


@pytest.mark.parametrize("name", ["part/first", "part/second"])
def test_a_notebook_is_valid_and_executed(built, name):
    made = notebook(built, name)
    nbformat.validate(made)
    assert made.cells[0].id == "install"
    assert made.cells[0].source.endswith("%env JAX_PLATFORMS=cpu")  # with libtpu jax seeks a TPU
    assert "jax==" in made.cells[0].source
    assert "pallas-rungs @ git+https://" in made.cells[0].source
    ids = [cell.id for cell in made.cells]
    assert len(set(ids)) == len(ids)
    outputs = [o for cell in made.cells if cell.cell_type == "code" for o in cell.outputs]
    assert outputs
    assert not any("vnd.pallas" in mime for o in outputs for mime in o.get("data", {}))


def test_the_page_links_its_notebook(built):
    badge = built.page("book/part/first")
    assert 'href="../../notebooks/part/first.ipynb" download' in badge
    assert "colab.research.google.com" not in badge  # no branch holds the notebooks yet


def test_a_branch_with_notebooks_is_linked_on_colab():
    options = {"repository_url": "https://github.com/someone/book/"}
    config = SimpleNamespace(
        html_theme_options=options, root_doc="book/index", pallas_rungs_notebook_branch="notebooks"
    )
    assert colab_address(SimpleNamespace(config=config), "book/part/first") == (
        "https://colab.research.google.com/github/someone/book/blob/notebooks/part/first.ipynb"
    )


def test_a_notebook_holds_no_directive_or_role(built):
    text = "\n".join(
        cell.source for cell in notebook(built, "part/second").cells if cell.cell_type == "markdown"
    )
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    assert not re.search(r"\{[a-z-]+\}`|^:::|^\(.*\)=$", prose, re.M)
    assert "[A sum](https://" in prose


@pytest.fixture(scope="module")
def installed_copy(tmp_path_factory):
    """The package as pip installs it, in a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
        else:
            (source / name).write_text("")
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "code", source / "code", ignore=skip)
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    run = subprocess.run(
        [*command, "--target", str(folder / "packages"), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return folder / "packages"


def test_the_installed_package_brings_the_theme(installed_copy):
    theme = installed_copy / "pallas_rungs" / "book" / "assets" / "theme"
    for name in ("theme.toml", "layout.html", "static/pallas-rungs.css", "static/favicon.svg"):
        assert (theme / name).is_file(), name
    assert len(list((theme / "static" / "fonts").glob("*.woff2"))) == 5


def test_a_notebook_runs_on_its_own(built, installed_copy, tmp_path, monkeypatch):
    made = notebook(built, "part/first")
    assert made.cells.pop(0).id == "install"
    where = nbformat.v4.new_code_cell("import pallas_rungs; print(pallas_rungs.__file__)")
    made.cells.append(where)
    monkeypatch.setenv("PYTHONPATH", str(installed_copy))
    client = NotebookClient(
        made, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert where.outputs[0].text.startswith(str(installed_copy))
    assert os.listdir(tmp_path) == []


# ---- builds


def test_two_builds_are_alike_and_a_new_claim_reaches_the_index(built, small_book):
    code, said = small_book.build()
    assert code == 0, said
    for path in sorted(built.site.rglob("*")):
        if path.suffix in {".html", ".ipynb", ".json", ".css", ".js"}:
            twin = small_book.site / path.relative_to(built.site)
            assert twin.read_bytes() == path.read_bytes(), path.name

    more = """
```{code-cell} python
with claim("Three is odd.", rung="interpret"):
    assert 3 % 2
```
"""
    text = (small_book.folder / "book/part/second.md").read_text()
    small_book.write("book/part/second.md", text + more)
    untouched = (small_book.site / "book/part/first.html").stat().st_mtime_ns
    code, said = small_book.build()
    assert code == 0, said
    assert "Three is odd." in small_book.page("book/claims")
    assert "It holds 4 claims, 3 of them" in small_book.page("book/index")
    assert (small_book.site / "book/part/first.html").stat().st_mtime_ns == untouched


def test_front_matter_that_is_not_true_fails_the_build(small_book):
    first = front(covers="M-01, Z-99", rungs="trace, simulate") + FIRST
    small_book.write("book/part/first.md", first)
    text = (small_book.folder / "book/part/second.md").read_text()
    small_book.write("book/part/second.md", text.replace("part/first]", "part/nothing]"))
    code, said = small_book.build()
    report = said[said.rindex("The book was not built") :]
    assert code != 0
    assert "book/part/first.md: `covers` names Z-99" in report
    assert "book/part/first.md: the page has a claim on rung interpret" in report
    assert "book/part/first.md: `rungs` lists simulate" in report
    assert "book/part/second.md: `needs` names book/part/nothing" in report


def test_an_asset_of_another_host_and_an_open_item_of_a_complete_book_fail_the_build(small_book):
    text = (small_book.folder / "book/claims.md").read_text()
    small_book.write("book/claims.md", text + '\n<img src="https://x.org/a.png" alt="A">\n')
    config = yaml.safe_load((small_book.folder / "_config.yml").read_text())
    config["sphinx"]["config"]["pallas_rungs_coverage_complete"] = True
    small_book.write("_config.yml", yaml.safe_dump(config))
    code, said = small_book.build()
    report = said[said.rindex("The book was not built") :]
    assert code != 0
    assert re.search(r"book/claims.html:\d+: <img src> loads https://x.org/a.png", report)
    assert "no page covers M-03" in report
    assert "no page covers M-02" not in report


def test_a_formula_that_does_not_parse_fails_the_build_with_its_place(small_book):
    small_book.write("book/claims.md", "# Claims\n\nOne.\n\n$$\n\\nosuch{x}\n$$\n")
    code, said = small_book.build()
    report = said[said.rindex("The book was not built") :]
    assert code != 0
    assert "book/claims.md:5" in report
    assert r"\nosuch" in report
