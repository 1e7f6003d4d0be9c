"""What a reader does: read without scripts or from disk, move by keyboard, search, download."""

import nbformat
import pytest
from playwright.sync_api import expect

from . import checks


@pytest.fixture
def chapter(chapters):
    """A chapter page that is not the landing page."""
    return next(name for name in chapters if not name.endswith("index.html"))


@pytest.fixture
def desk(browser):
    """A wide window."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


@pytest.fixture
def phone(browser):
    """A narrow window without scripts."""
    context = browser.new_context(viewport={"width": 360, "height": 740}, java_script_enabled=False)
    yield context
    context.close()


def test_pages_read_with_scripts_off(phone, base, pages):
    for name in pages:
        page = phone.new_page()
        page.goto(f"{base}/{name}")
        expect(page.locator("h1").first).to_be_visible()
        expect(page.locator("main")).to_be_visible()
        expect(page.locator(".pr-mode")).to_be_hidden()
        page.close()


def test_the_contents_open_with_scripts_off(phone, base, chapter):
    page = phone.new_page()
    page.goto(f"{base}/{chapter}")
    contents = page.locator("#pr-contents")
    expect(contents).to_be_hidden()
    page.get_by_role("button", name="Contents", exact=True).click()
    expect(contents).to_be_visible()
    page.get_by_role("button", name="Close the contents").click()
    expect(contents).to_be_hidden()


def test_every_page_opens_from_disk(desk, site, pages):
    said = {}
    for name in pages:
        page, watch = checks.open_page(desk, (site / name).as_uri())
        if watch.said:
            said[name] = watch.said
        faces = page.evaluate("() => [...document.fonts].filter(f => f.status == 'loaded').length")
        assert faces > 0, f"{name}: no type face was loaded from disk"
        page.close()
    assert said == {}


def test_search_finds_pages_from_disk(desk, site):
    page, watch = checks.open_page(desk, (site / "search.html").as_uri() + "?q=kernel")
    expect(page.locator("#search-results li").first).to_be_visible(timeout=10_000)
    assert watch.said == []


def test_search_finds_pages_by_the_box_at_the_top(desk, base, chapter):
    page, watch = checks.open_page(desk, f"{base}/{chapter}")
    page.get_by_role("searchbox").first.fill("block")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results li").first).to_be_visible(timeout=10_000)
    assert watch.said == []


def test_the_first_tab_offers_to_skip_to_the_text(desk, base, chapter):
    page, _ = checks.open_page(desk, f"{base}/{chapter}")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    expect(skip).to_have_text("Skip to the text")
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "pr-text"


def test_what_has_the_focus_can_be_seen(desk, base, chapter):
    page, _ = checks.open_page(desk, f"{base}/{chapter}")
    for _ in range(25):
        page.keyboard.press("Tab")
        outline = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            return [e.outerHTML.slice(0, 80), s.outlineStyle, parseFloat(s.outlineWidth)]; }"""
        )
        assert outline[1] != "none", outline
        assert outline[2] >= 2, outline


def test_the_colour_mode_is_chosen_and_remembered(browser, base, chapter):
    context = browser.new_context(color_scheme="light", viewport={"width": 1280, "height": 900})
    page, _ = checks.open_page(context, f"{base}/{chapter}")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.locator(".pr-mode")
    button.click()
    button.click()
    expect(button).to_have_attribute("aria-label", "Colours: dark")
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    context.close()


def test_code_is_copied(browser, base, chapter):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, _ = checks.open_page(context, f"{base}/{chapter}")
    block = page.locator("div.cell_input div.highlight:visible").first
    block.hover()
    block.get_by_role("button", name="Copy").click()
    expect(block.get_by_role("button")).to_have_text("Copied")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.strip() == block.locator("pre").inner_text().strip()
    context.close()


def test_the_notebook_of_every_chapter_downloads(desk, base, chapters, tmp_path):
    for name in chapters:
        page, _ = checks.open_page(desk, f"{base}/{name}")
        with page.expect_download() as download:
            page.get_by_role("link", name="Notebook", exact=True).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        made = nbformat.read(path, as_version=4)
        nbformat.validate(made)
        assert any(cell.get("outputs") for cell in made.cells)
        page.close()


def test_print_leaves_the_frame_out(desk, base, chapter):
    page, _ = checks.open_page(desk, f"{base}/{chapter}")
    page.emulate_media(media="print")
    expect(page.locator(".pr-top")).to_be_hidden()
    expect(page.locator("#pr-contents")).to_be_hidden()
    expect(page.locator("h1").first).to_be_visible()
