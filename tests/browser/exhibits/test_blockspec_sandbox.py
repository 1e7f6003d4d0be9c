"""The BlockSpec sandbox as readers meet it: opened from disk in Chromium."""

from __future__ import annotations

import re

import numpy as np
import pytest

SANDBOX = "blockspec-sandbox"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
DEFAULT_SAID = "Program (1, 3), 8 of 12, starts at (256, 768)"


def said(page):
    return page.locator(f"{SANDBOX} output").inner_text()


def control(page, part):
    """The control of that name, e.g. `"dtype"` or `"block-0"`."""
    return page.locator(f"#{SANDBOX}-{part}")


def focus_on(page, part):
    """Move the focus with the Tab key until it is on that control."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == f"{SANDBOX}-{part}":
            return
    raise AssertionError(f"Tab never reaches {part!r}")


def test_takes_over_from_the_static_picture(open_page):
    page = open_page()
    assert said(page).startswith(DEFAULT_SAID)
    assert page.locator(".pr-exhibit-sentence").count() == 0
    assert page.locator(f"{SANDBOX} svg").count() == 1
    assert control(page, "from").input_value() == "ragged edges"


def test_by_keyboard_alone(open_page):
    page = open_page()
    focus_on(page, "program")
    page.keyboard.press("Home")
    assert "Program (0, 0), 1 of 12" in said(page)
    page.keyboard.press("ArrowRight")
    assert "Program (0, 1), 2 of 12" in said(page)
    page.keyboard.press("End")
    assert "Program (2, 3), 12 of 12" in said(page)

    focus_on(page, "block-0")
    page.keyboard.press("Control+a")
    page.keyboard.type("100")
    assert "Refused at: lower" in said(page)
    words = page.locator(".pr-bs-words").inner_text()
    assert "divisible by 8 and 128 respectively" in words
    assert "(Blocked(block_size=100), Blocked(block_size=256)), array shape (700, 1000)" in words

    focus_on(page, "index-0")
    page.keyboard.press("ArrowDown")
    assert "Refused at: simulate, lower" in said(page)
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == f"{SANDBOX}-kind-0"


def test_typing_through_an_invalid_number_keeps_the_last_valid_setting(open_page):
    page = open_page()
    block = control(page, "block-1")
    block.focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    assert said(page).startswith(DEFAULT_SAID)
    assert block.evaluate("element => !element.validity.valid")
    page.keyboard.press("Tab")
    assert block.input_value() == "256"
    block.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("0")
    assert said(page).startswith(DEFAULT_SAID)


def test_what_is_said_is_a_polite_live_region(open_page):
    page = open_page()
    output = page.locator(f"{SANDBOX} output")
    assert output.count() == 1
    assert page.get_by_role("status").count() == 1


def test_setting_is_in_the_address_and_comes_back(open_page):
    page = open_page()
    assert "#" not in page.url
    control(page, "from").select_option("more than VMEM holds")
    control(page, "chip").select_option("v6e")
    control(page, "dtype").select_option("bfloat16")
    fragment = "#" + page.url.partition("#")[2]
    assert fragment.startswith(f"#{SANDBOX}:array=8192%2C8192")
    assert page.get_by_text("Link to this setting").get_attribute("href") == fragment
    before = said(page)
    assert open_page(fragment).locator(f"{SANDBOX} output").inner_text() == before


def test_address_typed_into_the_open_page_is_followed(open_page):
    page = open_page()
    page.evaluate("location.hash = '#blockspec-sandbox:dtype=int8;program=0'")
    page.wait_for_function("document.querySelector('output').innerText.includes('1 of 12')")
    assert control(page, "dtype").input_value() == "int8"


@pytest.mark.parametrize(
    "fragment",
    ["#blockspec-sandbox", "#blockspec-sandbox:array=1e9;block=<b>;chip=__proto__", "#other"],
)
def test_damaged_address_gives_the_default(open_page, fragment):
    assert said(open_page(fragment)).startswith(DEFAULT_SAID)


@pytest.mark.parametrize("rank", ["1", "2", "3"])
def test_every_rank_and_preset_draws(open_page, rank):
    page = open_page()
    control(page, "rank").select_option(rank)
    assert page.locator("fieldset").count() == int(rank)
    assert_drawing_is_sane(page)
    for preset in page.locator("select").first.locator("option").all_inner_texts():
        if preset != "own setting":
            control(page, "from").select_option(preset)
            assert control(page, "from").input_value() == preset
            assert_drawing_is_sane(page)


def assert_drawing_is_sane(page):
    """No NaN, and the marked block lies inside the view box and has an area."""
    assert "NaN" not in page.locator(f"{SANDBOX} svg").first.evaluate("e => e.outerHTML")
    for box in page.locator(".pr-bs-block").all():
        x, y, width, height = (
            float(box.get_attribute(name)) for name in ("x", "y", "width", "height")
        )
        assert width > 0
        assert height > 0
        assert 0 <= x <= x + width <= 560.5
        assert 0 <= y <= y + height <= 400.5


def test_block_that_strays_shows_what_each_rung_does(open_page):
    page = open_page()
    control(page, "from").select_option("an index map that counts elements")
    rungs = {
        line.locator(".pr-rung").inner_text(): line.locator(".pr-verdict").inner_text()
        for line in page.locator(".pr-bs-rungs li").all()
    }
    assert rungs == {
        "interpret": "wrong",
        "simulate": "refused",
        "lower": "passed",
        "compile": "fits",
    }
    assert page.locator(".pr-bs-elsewhere").count() == 1


def test_click_on_a_block_chooses_its_program(open_page):
    page = open_page()
    picture = page.locator(f"{SANDBOX} svg")
    box = picture.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.2)
    assert "Program (0, 0)" in said(page)
    page.mouse.click(box["x"] + 2, box["y"] + 2)
    assert "Program (0, 0)" in said(page)


def test_phone_by_touch(open_page):
    page = open_page(**PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    slider = control(page, "program")
    box = slider.bounding_box()
    page.touchscreen.tap(box["x"] + 6, box["y"] + box["height"] / 2)
    assert "Program (0, 0)" in said(page)
    control(page, "from").select_option("one row of a batch at a time")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for one in page.locator(f"{SANDBOX} :is(select, input)").all():
        assert one.bounding_box()["height"] >= 40


@pytest.mark.parametrize("width", [360, 480, 640, 1000, 1440])
def test_nothing_moves_when_it_starts(browser, site, width):
    """The place kept before the script has run is the place that the exhibit takes."""
    figure = "() => document.querySelector('.pr-exhibit').getBoundingClientRect().height"
    context = browser.new_context(viewport={"width": width, "height": 900})
    live = context.new_page()
    live.goto((site / "index.html").as_uri())
    waiting = context.new_page()
    waiting.route("**/exhibits.js*", lambda route: route.abort())
    waiting.goto((site / "index.html").as_uri())
    assert waiting.locator(".pr-exhibit-sentence").count() == 1, "the script ran all the same"
    for page in (live, waiting):
        page.evaluate("document.fonts.ready")
    assert live.evaluate(figure) == waiting.evaluate(figure)
    empty = live.evaluate(
        """() => document.querySelector('blockspec-sandbox').getBoundingClientRect().bottom
            - document.querySelector('.pr-bs').getBoundingClientRect().bottom"""
    )
    assert empty < 120, "the kept place is much higher than the exhibit"
    context.close()


def test_scripts_off(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator(".pr-exhibit-sentence").inner_text().startswith(DEFAULT_SAID)
    picture = page.locator(f"{SANDBOX} svg")
    assert picture.is_visible()
    assert "cut into a grid of 3 × 4 blocks" in picture.get_attribute("aria-label")
    assert page.locator(f"{SANDBOX} :is(input, select)").count() == 0
    assert page.locator(SANDBOX).bounding_box()["height"] < 700


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_static_picture_and_live_picture_are_the_same(open_page, scheme):
    """What takes over is drawn where the picture was: same boxes, same text."""
    boxes = """() => [...document.querySelectorAll('blockspec-sandbox svg > rect')].map(
        rect => ['x', 'y', 'width', 'height'].map(name => Number(rect.getAttribute(name))))"""
    static = open_page(java_script_enabled=False, color_scheme=scheme)
    live = open_page(color_scheme=scheme)
    assert static.locator(f"{SANDBOX} svg > rect").count() == 3
    read = [
        [float(box.get_attribute(name)) for name in ("x", "y", "width", "height")]
        for box in static.locator(f"{SANDBOX} svg > rect").all()
    ]
    assert np.abs(np.subtract(live.evaluate(boxes), read)).max() < 0.11


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("context", [{}, PHONE])
def test_axe_finds_nothing(open_page, root, scheme, context):
    page = open_page(color_scheme=scheme, **context)
    axe = root / "exhibits" / "node_modules" / "axe-core" / "axe.min.js"
    page.evaluate(axe.read_text())
    for preset in ("ragged edges", "a block that no chip takes", "one row of a batch at a time"):
        control(page, "from").select_option(preset)
        found = page.evaluate("axe.run('.pr-exhibit', {preload: false})")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
        assert len(found["passes"]) > 10


def test_dark_follows_the_page(open_page):
    """The colours are the page's variables: the system's dark, or the reader's own choice."""
    fill = "() => getComputedStyle(document.querySelector('.pr-bs-array')).fill"
    light, dark = open_page().evaluate(fill), open_page(color_scheme="dark").evaluate(fill)
    assert light != dark
    chosen = open_page()
    chosen.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert chosen.evaluate(fill) == dark


def test_reduced_motion(open_page):
    bar = "() => getComputedStyle(document.querySelector('.pr-bs-bar div')).transitionDuration"
    assert open_page(reduced_motion="reduce").evaluate(bar) == "0s"
    assert open_page(reduced_motion="no-preference").evaluate(bar) != "0s"


def test_only_pages_with_an_exhibit_load_it(open_page, site):
    loads = re.compile(r"exhibits\.(?:js|css)")
    assert loads.search((site / "index.html").read_text())
    assert not loads.search((site / "other.html").read_text())
    assert open_page(page="other.html").locator(SANDBOX).count() == 0
