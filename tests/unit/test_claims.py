"""Claims and refusals: what holds, what fails, what is left for the book to gather."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pallas_rungs import claims
from pallas_rungs.claims import MIME, anchor, claim, refuses


class Notebook:
    """Stands in for IPython and keeps what is displayed."""

    def __init__(self):
        self.shown = []

    def get_ipython(self):
        return self

    @property
    def display(self):
        return SimpleNamespace(display=lambda data, raw: self.shown.append(data))

    @property
    def records(self):
        return [data[MIME] for data in self.shown]


@pytest.fixture
def notebook(monkeypatch):
    listener = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", listener)
    return listener


def test_a_claim_is_shown_once_its_body_has_run(notebook):
    with claim("twice `two` is four", rung="interpret"):
        assert notebook.shown == []
    (shown,) = notebook.shown
    assert shown[MIME] == {
        "kind": "claim",
        "text": "twice `two` is four",
        "rung": "interpret",
        "anchor": "claim-twice-two-is-four",
    }
    assert 'id="claim-twice-two-is-four"' in shown["text/html"]
    assert 'data-rung="interpret"' in shown["text/html"]
    assert "<code>two</code>" in shown["text/html"]
    assert shown["text/plain"] == "[interpret] twice `two` is four"


def test_a_claim_whose_body_raises_is_not_shown_and_says_which_it_was(notebook):
    with pytest.raises(AssertionError) as caught, claim("one is two", rung="trace"):
        raise AssertionError
    assert notebook.shown == []
    assert caught.value.__notes__ == ["while proving the claim: one is two (rung: trace)"]


def test_markup_in_a_claim_is_escaped(notebook):
    with claim("a < b & `<script>`", rung="trace"):
        pass
    assert "a &lt; b &amp; <code>&lt;script&gt;</code>" in notebook.shown[0]["text/html"]


@pytest.mark.parametrize("rung", ["", "run", "Simulate"])
def test_an_unknown_rung_is_refused(rung):
    with pytest.raises(ValueError, match=re.escape(f"no rung is called {rung!r}")):
        claim("something", rung=rung)


def test_an_empty_claim_is_refused():
    with pytest.raises(ValueError, match="needs a sentence"):
        claim("  ", rung="trace")


def test_a_refusal_is_kept_and_shown(notebook):
    with refuses(ValueError, match="too big") as refusal:
        raise ValueError("\nblock 9 is <too big>\nsecond line")
    assert (refusal.type, refusal.message) == ("ValueError", "\nblock 9 is <too big>\nsecond line")
    (record,) = notebook.records
    assert record["kind"] == "refusal"
    assert record["text"] == "ValueError: block 9 is <too big>"
    assert record["rung"] == ""
    assert "block 9 is &lt;too big&gt;" in notebook.shown[0]["text/html"]
    assert "second line" not in notebook.shown[0]["text/html"]


def test_a_refusal_takes_the_rung_of_the_claim_around_it(notebook):
    with claim("it is refused", rung="lower"), refuses(KeyError, match="x"):
        raise KeyError("x")
    assert [(r["kind"], r["rung"]) for r in notebook.records] == [
        ("refusal", "lower"),
        ("claim", "lower"),
    ]
    with refuses(KeyError, match="x"):
        raise KeyError("x")
    assert notebook.records[-1]["rung"] == ""


def test_a_refusal_that_does_not_come_fails(notebook):
    wanted = "expected ValueError with a message like 'bad'; nothing was raised"
    with pytest.raises(AssertionError, match=wanted), refuses(ValueError, match="bad"):
        pass
    assert notebook.shown == []


def test_a_refusal_of_another_type_fails_and_shows_both():
    wanted = "expected ValueError with a message like 'bad'; KeyError was raised instead: 'bad'"
    with pytest.raises(AssertionError, match=wanted) as caught, refuses(ValueError, match="bad"):
        raise KeyError("bad")
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_refusal_with_another_message_fails_and_shows_both():
    wanted = "a message like 'bad'; the message was another: 'good'"
    with pytest.raises(AssertionError, match=wanted), refuses(ValueError, match="bad"):
        raise ValueError("good")


def test_a_subclass_will_do():
    with refuses(ArithmeticError, match="division") as refusal:
        _ = 1 // 0
    assert refusal.type == "ZeroDivisionError"


def test_an_interrupt_is_no_refusal():
    with pytest.raises(KeyboardInterrupt), refuses(Exception, match="x"):
        raise KeyboardInterrupt


def test_match_is_asked_for():
    with pytest.raises(ValueError, match="needs match="):
        refuses(ValueError, match="")


def test_anchors_are_short_stable_and_differ():
    long = "a sentence that goes on and on " * 4
    assert anchor("claim", "It's 2 × 2!") == "claim-it-s-2-2"
    assert len(anchor("claim", long)) <= 70
    assert anchor("claim", long) == anchor("claim", long)
    assert anchor("claim", long) != anchor("claim", long + "still")
    assert anchor("claim", "×") != anchor("claim", "÷")


def test_outside_a_notebook_claims_are_silent():
    code = (
        "from pallas_rungs.claims import claim, refuses\n"
        "with claim('quiet', rung='trace'):\n    pass\n"
        "with refuses(KeyError, match='x'):\n    raise KeyError('x')\n"
        "import sys; print(sorted(m for m in ('IPython', 'jax') if m in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr, result.returncode) == ("[]\n", "", 0)


def test_records_are_json(notebook):
    with refuses(KeyError, match="x"):
        raise KeyError("x")
    assert json.loads(json.dumps(notebook.records)) == notebook.records
    assert claims.RUNGS[0] == "source"


def test_what_differs_from_run_to_run_is_left_out_of_a_refusal(notebook):
    for pid in (17, 18):
        with refuses(KeyError, match="constants"):
            raise KeyError(f"f at /tmp/ipykernel_{pid}/1234.py:2 has constants at 0x7f00deadbeef")
    first, second = notebook.records
    assert first["text"] == "KeyError: 'f at the cell:2 has constants at 0x…'"
    assert first["message"] == second["message"]
    assert second["anchor"] == first["anchor"] + "-2"


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(claims, "_compiler_is_here", lambda: False)


def test_without_a_compiler_a_claim_of_its_rung_is_shown_as_not_checked(notebook, no_compiler):
    with claim("it fits", rung="compile"):
        assert "unavailable" == "passed"
    (shown,) = notebook.shown
    assert shown[MIME]["kind"] == "unproved"
    assert "not checked in this build" in shown["text/html"]


@pytest.mark.parametrize(("rung", "error"), [("lower", AssertionError), ("compile", KeyError)])
def test_without_a_compiler_nothing_else_is_forgiven(notebook, no_compiler, rung, error):
    with pytest.raises(error), claim("it fits", rung=rung):
        raise error
    assert notebook.shown == []


def test_with_a_compiler_its_rung_forgives_nothing(notebook, monkeypatch):
    monkeypatch.setattr(claims, "_compiler_is_here", lambda: True)
    with pytest.raises(AssertionError), claim("it fits", rung="compile"):
        raise AssertionError
