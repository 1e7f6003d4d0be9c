"""The checks of pages find what they are for."""

import pytest

from . import checks

HEAD = '<!DOCTYPE html><html lang="en"><head><title>A</title><link rel="icon" href="data:,">'


def planted(folder, body, head=""):
    html = f"{HEAD}{head}</head><body><main><h1>A</h1>{body}</main></body></html>"
    (folder / "a.html").write_text(html)
    return folder


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<script>console.error('no')</script>", "console error: no"),
        ("<script>nothing.here()</script>", "script error"),
        ('<img src="gone.png" alt="">', "404"),
        ('<img src="http://127.0.0.2:9/a.png" alt="">', "asks another host"),
    ],
)
def test_complaints_are_found(browser, tmp_path, body, said):
    with checks.served(planted(tmp_path, body)) as base:
        assert said in "\n".join(checks.survey(browser, base, "a.html").complaints)


def test_a_quiet_page_has_no_complaints(browser, tmp_path):
    with checks.served(planted(tmp_path, "<p>Words.</p>")) as base:
        found = checks.survey(browser, base, "a.html")
    assert (found.complaints, found.barriers, found.sideways) == ([], [], [])


def test_low_contrast_is_found_in_the_mode_that_has_it(browser, tmp_path):
    style = "<style>@media (prefers-color-scheme: dark) { p { color: #eee } }</style>"
    with checks.served(planted(tmp_path, "<p>Words.</p>", style)) as base:
        found = checks.survey(browser, base, "a.html").barriers
    assert [line.split(":")[:2] for line in found] == [
        ["dark, 1280 px", " color-contrast"],
        ["dark, 360 px", " color-contrast"],
    ]


def test_a_wide_block_is_found_and_one_that_scrolls_inside_is_not(browser, tmp_path):
    wide = '<div style="width: 500px">x</div>'
    with checks.served(planted(tmp_path, wide)) as base:
        found = checks.survey(browser, base, "a.html").sideways
    assert {line.split(":")[0] for line in found} == {"360 px", "320 px"}
    inside = f'<div style="overflow-x: auto" tabindex="0">{wide}</div>'
    with checks.served(planted(tmp_path, inside)) as base:
        assert checks.survey(browser, base, "a.html").sideways == []


def test_the_weight_counts_what_a_page_loads(browser, tmp_path):
    (tmp_path / "a.css").write_text("".join(f".c{n} {{ color: #{n:06x} }}\n" for n in range(9999)))
    site = planted(tmp_path, "<p>x</p>", '<link rel="stylesheet" href="a.css">')
    with checks.served(site) as base:
        sizes = checks.survey(browser, base, "a.html").sizes
    assert {url.rsplit("/", 1)[-1] for url in sizes} == {"a.html", "a.css"}
    css = next(size for url, size in sizes.items() if url.endswith(".css"))
    assert 10_000 < css < (tmp_path / "a.css").stat().st_size / 3


def test_dead_links_are_found(tmp_path):
    planted(tmp_path, '<a href="b.html">b</a><a href="#c">c</a><a href="a.html">a</a>')
    assert checks.dead_links(tmp_path) == [
        "a.html: b.html is not there",
        "a.html: #c has no such place",
    ]
