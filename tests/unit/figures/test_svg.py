"""The drawing core: valid XML, escaped text, alternative text, both themes."""

import re
import xml.etree.ElementTree as ET

import pytest

from pallas_rungs.figures.svg import SVG, Figure, el, hatch, swatch, text
from pallas_rungs.figures.theme import HIGHLIGHTS, colour, stylesheet


def drawing(words: str = "x", **options: str) -> SVG:
    body = (text(0, 10, words, fill=colour("text")),)
    return SVG(10, 20, body, options.pop("title", "A title"), "What it shows.", **options)


def test_text_and_attributes_are_escaped():
    svg = drawing('a < b & "c"', title="<b>")
    root = ET.fromstring(str(svg))
    assert root.findtext("text") == 'a < b & "c"'
    assert root.findtext("title") == "<b>"
    assert el("a", href='"&').attributes == (("href", '"&'),)
    assert ET.fromstring(str(el("a", href='"&'))).get("href") == '"&'


def test_a_drawing_is_an_image_with_title_and_description():
    root = ET.fromstring(str(drawing()))
    assert root.get("role") == "img"
    named = {e.get("id"): e.text for e in root if e.tag in ("title", "desc")}
    assert [named[i] for i in root.get("aria-labelledby").split()] == ["A title", "What it shows."]


@pytest.mark.parametrize("missing", ["title", "desc"])
def test_a_drawing_without_words_is_refused(missing):
    given = {"title": "t", "desc": "d"} | {missing: " "}
    with pytest.raises(ValueError, match="title and a description"):
        SVG(1, 1, (), **given)


def test_a_figure_without_alternative_text_is_refused():
    with pytest.raises(ValueError, match="alt is empty"):
        Figure(alt="", panels=(drawing(),))
    with pytest.raises(ValueError, match="at least one drawing"):
        Figure(alt="x", panels=())


def test_the_same_drawing_gives_the_same_bytes_and_other_drawings_other_ids():
    assert str(drawing()) == str(drawing())
    ids = re.findall(r'id="(\w+)"', str(drawing("x")) + str(drawing("y")))
    assert len(ids) == len(set(ids)) == 4


def test_a_cell_shows_a_figure_as_html_and_as_text():
    bundle = Figure(alt="two < three", panels=(drawing(),))._repr_mimebundle_()
    assert bundle["text/plain"] == "two < three"
    root = ET.fromstring(bundle["text/html"])
    assert root.get("aria-label") == "two < three"
    assert root.find("svg") is not None


def test_wide_and_narrow_drawings_exclude_each_other():
    wide, narrow = drawing(show="wide"), drawing(show="narrow")
    root = ET.fromstring(Figure(alt="a", panels=(wide, narrow))._repr_html_())
    assert [svg.get("class") for svg in root.iter("svg")] == ["pr-fig-wide", "pr-fig-narrow"]
    style = root.findtext("style")
    assert ".pr-fig-narrow{display:none}" in style
    assert re.search(
        r"@container\(max-width:[\d.]+rem\)\{\.pr-figure \.pr-fig-wide\{display:none\}", style
    )
    with pytest.raises(ValueError, match="show is 'tall'"):
        drawing(show="tall")


def test_every_colour_used_is_defined_for_both_themes():
    style = stylesheet(colour("text") + colour("fill-3"))
    for name, book in (("text", "text"), ("fill-3", "fig-fill-3")):
        values = re.findall(rf"--f-{name}:var\(--pr-{book},(#\w+)\)", style)
        assert len(set(values)) == 2, values
    assert "--f-muted" not in style
    with pytest.raises(KeyError, match="no theme colour 'pink'"):
        colour("pink")


def luminance(value: str) -> float:
    parts = [int(value[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_words_on_every_fill_can_be_read_in_both_themes(theme):
    names = ["text", "muted", "ground", "raised", "panel", "good", "bad", "warn"]
    names += [f"fill-{i}" for i in range(1, HIGHLIGHTS + 1)]
    names += [str(i) for i in range(1, HIGHLIGHTS + 1)]
    style = stylesheet("".join(map(colour, names)))
    value = {n: re.findall(rf"--f-{n}:var\([^,]+,(#\w+)\)", style)[theme] for n in names}
    for ground in ("ground", "raised", "panel", *(f"fill-{i}" for i in range(1, HIGHLIGHTS + 1))):
        assert contrast(value["text"], value[ground]) >= 7, ground
        assert contrast(value["muted"], value[ground]) >= 4.5, ground
    for ink in ("good", "bad", "warn"):
        assert contrast(value[ink], value["ground"]) >= 4.5, ink
    for i in range(1, HIGHLIGHTS + 1):
        assert contrast(value[str(i)], value["ground"]) >= 3, i


def test_a_drawing_stands_alone(tmp_path):
    drawing().save(tmp_path / "x.svg")
    root = ET.parse(tmp_path / "x.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in root.findtext("{http://www.w3.org/2000/svg}style")


def test_hatching_stays_inside_its_rectangle():
    numbers = [float(n) for n in re.findall(r"[\d.]+", hatch(10, 20, 30, 15))]
    assert len(numbers) >= 12
    assert all(10 <= x <= 40 for x in numbers[::2])
    assert all(20 <= y <= 35 for y in numbers[1::2])


def test_swatches_are_hidden_from_readers_who_hear():
    assert ET.fromstring(str(swatch(1))).get("aria-hidden") == "true"
