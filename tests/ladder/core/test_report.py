"""Reports: text, HTML, JSON and the exit code say the same thing."""

import json
import subprocess
import sys
from html.parser import HTMLParser

import jax
import numpy as np
import pytest
from jax.experimental import pallas as pl
from rich.console import Console

from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import Report, Rung, Status, Verdict, climb

HERE = ("trace", "interpret", "simulate", "lower")


@pytest.fixture(scope="module")
def healthy():
    return climb(sick.add_one, sick.X, reference=sick.add_one_reference, rungs=HERE)


@pytest.fixture(scope="module")
def ailing():
    return climb(
        sick.fresh_accumulator,
        sick.X,
        reference=sick.sum_of_blocks,
        rungs=HERE,
        chips=("v5e", "v6e"),
        name="<sum & more>",
    )


def test_a_healthy_kernel(healthy):
    assert healthy.passed
    assert healthy.exit_code == 0
    assert healthy.first_caught() is None
    rungs = [str(v.rung) for v in healthy.verdicts]
    assert rungs == ["trace", "interpret", "simulate", "simulate", "lower"]


def test_a_failed_rung_does_not_block_the_others(ailing):
    assert ailing.status("interpret") is Status.WRONG
    assert ailing.status("lower", "v6e") is Status.PASSED
    assert ailing.first_caught() is Rung.INTERPRET
    assert ailing.exit_code == 1


def test_unchecked_is_not_passed():
    report = climb(sick.add_one, sick.X, rungs=["interpret"])
    assert report.status("interpret") is Status.UNCHECKED
    assert report.exit_code == 1
    assert report.first_caught() is None


def test_nothing_asked_is_not_passed():
    assert not Report("nothing", ()).passed


def test_a_rung_not_asked_for_is_named(healthy):
    with pytest.raises(KeyError, match="asked for were trace"):
        healthy.of("compile")


def test_of_several_the_sick_one_is_shown():
    sick_one = Verdict.of(Rung.SIMULATE, Status.REFUSED, "races", "RACE DETECTED")
    report = Report("x", (Verdict.of(Rung.SIMULATE, Status.PASSED, "default"), sick_one))
    assert report.of("simulate") is sick_one
    assert report.status("simulate", "default") is Status.PASSED


def test_json_reads_back(ailing):
    data = json.loads(json.dumps(ailing.to_json()))
    assert Report.from_json(data) == ailing
    assert data["first_caught"] == "interpret"
    assert set(data["versions"]) == {"jax", "jaxlib", "libtpu", "python", "date"}


def test_another_format_is_refused(healthy):
    with pytest.raises(ValueError, match="format 99"):
        Report.from_json({**healthy.to_json(), "format": 99})


def test_an_unknown_status_is_refused(healthy):
    data = healthy.verdicts[0].to_json() | {"status": "splendid"}
    with pytest.raises(ValueError, match="splendid"):
        Verdict.from_json(data)


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.open, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html_holds_every_verdict_and_is_balanced(ailing):
    parser = Elements()
    parser.feed(ailing._repr_html_())
    assert not parser.open
    rows = [attrs for _, attrs in parser.found if attrs.get("class") == "pr-verdict"]
    assert [(r["data-rung"], r["data-target"], r["data-status"]) for r in rows] == [
        (str(v.rung), v.target, str(v.status)) for v in ailing.verdicts
    ]
    for verdict in ailing.verdicts:
        assert verdict.summary in parser.text
    assert "<sum & more>" in parser.text


def test_html_folds_error_line_and_advice():
    report = climb(sick.python_if, sick.X, rungs=["trace"])
    html = report._repr_html_()
    assert "<details" in html
    assert 'class="pr-error"' in html
    assert "pl.when" in html
    assert "if pl.program_id(0) == 0:" in html


def test_text_and_rich_say_the_same(ailing):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(ailing.rich())
    rich = console.export_text()
    for verdict in ailing.verdicts:
        assert str(verdict.status) in str(ailing)
        assert str(verdict.status) in rich
    assert "1024 of 1024 values differ" in str(ailing)


def test_an_unknown_rung_is_named():
    with pytest.raises(ValueError, match="'stairs'"):
        climb(sick.add_one, sick.X, rungs=["stairs"])


def test_importing_climb_by_name_is_light_until_used():
    code = (
        "import sys, pallas_rungs.ladder as l; assert 'jax' not in sys.modules; "
        "from pallas_rungs.ladder import climb, Report; assert callable(climb); "
        "import pallas_rungs.ladder.climbing; from pallas_rungs.ladder import climb; "
        "assert callable(climb)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_text_says_once_that_the_kernels_own_interpret_was_set_aside():
    def double(x):
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(double_kernel, out, interpret=True)(x)

    def double_kernel(x_ref, o_ref):
        o_ref[...] = 2 * x_ref[...]

    report = climb(double, np.ones((8, 128), np.float32), rungs=["trace", "lower"])
    text = str(report)
    assert text.count("the kernel's own interpret=True was set aside") == 1
    assert "(trace, lower v5e)" in text


def test_a_result_full_of_nan_comes_with_a_hint_and_a_wrong_number_without(ailing):
    hint = "NaN is what memory holds here before it is written"
    assert hint in str(ailing)
    wrong = climb(sick.add_one, sick.X, reference=lambda x: x + 2, rungs=["interpret"])
    assert wrong.status("interpret") == "wrong"
    assert hint not in str(wrong)
