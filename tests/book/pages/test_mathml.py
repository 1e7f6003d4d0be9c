from xml.etree import ElementTree as ET

import pytest

from pallas_rungs.book.mathml import TexError, to_mathml


@pytest.mark.parametrize("display", [True, False])
@pytest.mark.parametrize(
    "tex",
    [
        r"\frac{a}{b}",
        r"x \le y \cdot \lceil M/b_m \rceil",
        r"\operatorname{softmax}(x)_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}",
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
        r"\{0, 1\}",
        r"\mathbb{R}^{m \times n}",
        r"\begin{cases} a & x > 0 \\ b & \text{else}\end{cases}",
    ],
)
def test_a_formula_becomes_one_wellformed_math_element_that_keeps_its_tex(tex, display):
    root = ET.fromstring(to_mathml(tex, display=display))
    assert root.tag == "math"
    assert root.get("display") == ("block" if display else "inline")
    assert [n.text for n in root.iter("annotation")] == [tex]
    assert "\\" not in "".join(n.text or "" for n in root.iter() if n.tag != "annotation")


@pytest.mark.parametrize(
    ("tex", "said"),
    [
        (r"\foo{a}", r"\\foo"),
        (r"\frac{a", "open"),
        (r"a_{b", "open"),
        (r"} a", "never opened"),
        (r"\left( x", "does not parse"),
        (r"a & b", "stray '&'"),
        ("  ", "empty"),
    ],
)
def test_a_formula_that_would_be_printed_raw_is_refused(tex, said):
    with pytest.raises(TexError, match=said):
        to_mathml(tex)


def test_aligned_lines_become_a_table():
    root = ET.fromstring(to_mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True))
    assert len(list(root.iter("mtr"))) == 2


def test_ceiling_brackets_are_operators():
    root = ET.fromstring(to_mathml(r"\lceil x \rceil"))
    assert [n.text for n in root.iter("mo")] == ["⌈", "⌉"]
