"""The authors' store: what is executed again, and that it never shows what no longer holds."""

import json
import re


def test_a_healthy_book_is_built(healthy):
    assert healthy.build.code == 0, healthy.build.output
    assert healthy.build.executed == ["book/alpha.md", "book/beta.md"]
    assert "0 left" in healthy.build.output


def test_nothing_changed_executes_nothing(twin):
    build = twin.build()
    assert build.code == 0
    assert build.executed == []


def test_prose_executes_nothing_and_is_shown(twin):
    twin.edit("book/alpha.md", "The end.", "A new last sentence.")
    build = twin.build()
    assert build.code == 0
    assert build.executed == []
    assert "A new last sentence." in twin.page("alpha")
    assert "claim-doubling-two-gives-four" in twin.page("alpha")


def test_a_changed_module_executes_only_chapters_that_reach_it(twin):
    twin.edit("code/minibook/other.py", "return 3 * x", "return x + x + x")
    build = twin.build()
    assert build.code == 0
    assert build.executed == ["book/beta.md"]


def test_a_broken_function_is_found_though_no_chapter_changed(twin):
    twin.edit("code/minibook/other.py", "return 3 * x", "return 4 * x")
    for _ in range(2):
        build = twin.build()
        assert build.code != 0
        assert build.executed == ["book/beta.md"]
        fault = build.fault("book/beta.md:51: code cell 5: AssertionError")
        assert "claim: tripling works" in fault
        assert "triple(2) = 8" in fault
    twin.edit("code/minibook/other.py", "return 4 * x", "return 3 * x")
    mended = twin.build()
    assert mended.code == 0
    assert mended.executed == []


def test_an_edited_drawn_symbol_is_executed_and_shown(twin):
    twin.edit("code/minibook/core.py", "math.prod([2, x])", "math.prod([x, 2])")
    build = twin.build()
    assert build.code == 0, build.output
    assert build.executed == ["book/alpha.md"]
    assert '[</span><span class="n">x</span>' in twin.page("alpha")


def test_the_gate_executes_everything(twin):
    build = twin.build(PALLAS_RUNGS_FRESH="1")
    assert build.code == 0
    assert build.executed == ["book/alpha.md", "book/beta.md"]


def test_what_chapters_share_is_of_this_build_alone(twin, small):
    shares = (
        'import os\nfrom pathlib import Path\n\nfolder = Path(os.environ["PALLAS_RUNGS_CLIMBS"])\n'
        'assert not list(folder.iterdir())\n(folder / "left.json").write_text("first")\n'
    )
    twin.edit("book/alpha.md", "The end.", small.cell(shares))
    assert twin.build().executed == ["book/alpha.md"]
    twin.edit("book/alpha.md", '"first"', '"second"')
    build = twin.build()
    assert build.code == 0, build.output
    assert build.executed == ["book/alpha.md"]


def test_a_page_lists_what_it_proved(healthy):
    page = healthy.book.page("alpha")
    assert '<section class="pr-proved" id="what-this-page-proved">' in page
    assert 'id="claim-doubling-two-gives-four"' in page
    assert 'href="#claim-doubling-two-gives-four"' in page
    assert 'href="#what-this-page-proved"' in page  # in the page's own contents
    assert "minibook/core.py:double" in page


def test_a_drawn_cell_imports_what_it_needs_when_asked(healthy):
    page = re.sub("<[^>]+>", "", healthy.book.page("beta"))
    assert "from math import fsum\nfrom minibook.other import LIMIT\n\n\ndef total(items):" in page
    assert "3.0" in page


def test_expected_standard_error_and_glued_values_are_shown(healthy):
    page = healthy.book.page("beta")
    assert "a word of caution" in page
    assert "<span></span>In[3]\n" in page  # instead of a file that differs in every kernel
    assert "The answer is 42." in re.sub("<[^>]+>", "", page)


def test_the_store_keeps_claims_in_machine_readable_form(healthy):
    (file,) = (healthy.book.folder / "_build/executed/book/beta").glob("*.json")
    outputs = json.loads(file.read_text("utf8"))["outputs"]
    (record,) = [
        output["data"]["application/vnd.pallas-rungs.claim+json"]
        for cell in outputs
        for output in cell
        if "application/vnd.pallas-rungs.claim+json" in output.get("data", {})
    ]
    assert record["text"] == "tripling works"
    assert record["rung"] == "trace"
