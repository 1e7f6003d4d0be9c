import pytest

from pallas_rungs.book.slimming import outside_assets, scan

HERE = [
    '<a href="https://x.org/">words</a>',
    '<link rel="canonical" href="https://x.org/a.html">',
    '<img src="../_images/a.svg">',
    '<img src="data:image/png;base64,AAAA">',
    '<form action="search.html"></form>',
    '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>',
    "<p>https://x.org/a.js in words</p>",
    '<script src="_static/a.js?v=1"></script>',
]
ELSEWHERE = [
    '<script src="https://x.org/a.js"></script>',
    '<script src="//x.org/a.js"></script>',
    '<link rel="stylesheet" href="https://x.org/a.css">',
    '<link href="https://x.org/a.css" rel="preload stylesheet">',
    '<img src="http://x.org/a.png">',
    '<img srcset="a.png 1x, https://x.org/b.png 2x">',
    '<iframe src="https://x.org/"></iframe>',
    '<video poster="https://x.org/p.png"></video>',
    '<object data="https://x.org/p.svg"></object>',
    '<p style="background: url(https://x.org/p.png)">x</p>',
    '<style>@import "https://x.org/a.css";</style>',
    '<svg><use href="https://x.org/a.svg#b"/></svg>',
    '<svg><image xlink:href="https://x.org/a.png"/></svg>',
    '<script>import("https://x.org/a.js")</script>',
    '<form action="https://x.org/search"></form>',
]


@pytest.mark.parametrize("text", HERE)
def test_a_page_complete_in_itself_passes(text):
    assert outside_assets("a.html", text) == []


@pytest.mark.parametrize("text", ELSEWHERE)
def test_an_asset_of_another_host_is_found(text):
    (asset,) = outside_assets("a.html", f"<!DOCTYPE html>\n{text}\n")
    assert asset.line == 2
    assert "x.org/" in asset.url


@pytest.mark.parametrize(
    "text",
    [
        "a { background: url(https://x.org/a.png) }",
        'a { background: url( "//x.org/a.png" ) }',
        '@import "https://x.org/a.css";',
        "@import url(https://x.org/a.css);",
        '@font-face { src: url("a.woff2"), url("https://x.org/a.woff2") }',
    ],
)
def test_a_stylesheet_that_loads_from_elsewhere_is_found(text):
    (asset,) = outside_assets("a.css", f"/* one */\n{text}")
    assert asset.line == 2


def test_a_stylesheet_may_name_a_host_in_a_comment():
    assert outside_assets("a.css", "/* url(https://x.org/a.png) */ a { src: url(b.png) }") == []


@pytest.mark.parametrize(
    "text",
    [
        'import a from "https://x.org/a.js";',
        'import("https://x.org/a.js")',
        "fetch('https://x.org/a.json')",
        'script.src = "https://x.org/a.js"',
    ],
)
def test_a_script_that_loads_from_elsewhere_is_found(text):
    assert len(outside_assets("a.js", text)) == 1


def test_a_script_may_hold_a_namespace():
    assert outside_assets("a.js", 'const SVG = "http://www.w3.org/2000/svg";') == []


def test_the_whole_site_is_looked_over(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.html").write_text(ELSEWHERE[0])
    (tmp_path / "d.css").write_text("a { src: url(//x.org/f) }")
    assert [asset.file for asset in scan(tmp_path)] == ["a/b/c.html", "d.css"]
