"""Claims and expected refusals: sentences that a chapter proves while it is executed.

``with claim("…", rung="simulate"):`` stands around the assertions that prove a sentence;
``with refuses(ValueError, match="…"):`` stands around code that must be refused. In a notebook
each leaves one display output, with a machine-readable form that the book gathers. Outside
IPython both are silent and only check.

Where libtpu is not installed (macOS, Arm) nobody can prove a claim of the compile rung. Such a
claim is then shown as not checked in this build, and is not counted. Nor is one that was held
against a record of what a compiler said.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from html import escape
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self

RUNGS: Final = ("source", "trace", "interpret", "simulate", "lower", "compile", "chip")
"""The rungs a claim may name. ``source`` is what the installed packages say: their text, their
data, and what their plain functions return. No kernel was traced for it, and none ran."""

MIME: Final = "application/vnd.pallas-rungs.claim+json"
"""The MIME type of the machine-readable form of a claim or a refusal."""

_CELL_FILE = re.compile(r"[^\s\"'<>()]*ipykernel_\d+[/\\]\d+\.py")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_open_rungs: list[str] = []
_refusals: dict[str, int] = {}


def anchor(kind: Literal["claim", "refusal"], text: str) -> str:
    """Return the HTML id of a claim or refusal: stable, and short enough for an address bar.

    Args:
        kind: What the text is; the id starts with it.
        text: The sentence; only its letters and digits count.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(slug) > 60 or not slug:
        digest = hashlib.sha256(text.encode()).hexdigest()[:6]
        slug = f"{slug[:53].rsplit('-', 1)[0]}-{digest}".strip("-")
    return f"{kind}-{slug}"


def _checked_rung(rung: str) -> str:
    if rung not in RUNGS:
        raise ValueError(f"no rung is called {rung!r}; the rungs are {', '.join(RUNGS)}")
    return rung


def _lasting(text: str) -> str:
    """Leave out colours, and replace what differs from run to run: cells' files, addresses."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})

    def cell(match: re.Match[str]) -> str:
        return f"In[{cells[match[0]]}]" if match[0] in cells else "the cell"

    return _ADDRESS.sub("0x…", _CELL_FILE.sub(cell, _COLOUR.sub("", text)))


def _compiler_is_here() -> bool:
    return importlib.util.find_spec("libtpu") is not None


def _prose(text: str) -> str:
    """Escape a sentence for HTML; `backticks` become code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _badge(rung: str) -> str:
    return f'<span class="pr-rung" data-rung="{rung}">{rung}</span>'


def _show(record: dict[str, Any], html: str, plain: str) -> None:
    """Display one output when a notebook is listening; do nothing otherwise."""
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return
    data = {MIME: record, "text/html": html, "text/plain": plain}
    ipython.display.display(data, raw=True)


def unproved(text: str, rung: str, remark: str) -> tuple[dict[str, Any], str]:
    """Return the output of a claim that this machine cannot check.

    Args:
        text: The sentence.
        rung: The rung that would prove it.
        remark: Why it is not checked, to stand in brackets.

    Returns:
        The machine-readable form, and the HTML.
    """
    return _record_and_html("unproved", " ".join(text.split()), _checked_rung(rung), remark)


def _record_and_html(
    kind: Literal["claim", "unproved"], text: str, rung: str, remark: str
) -> tuple[dict[str, Any], str]:
    name = anchor("claim", text)
    html = (
        f'<p class="pr-claim" id="{name}" data-rung="{rung}">'
        f"{_badge(rung)} {_prose(text)}{remark and f' ({remark})'}</p>"
    )
    return {"kind": kind, "text": text, "rung": rung, "anchor": name}, html


class Known(Protocol):
    """What a compiler said, now or when it was recorded (`compilers.records.Known`)."""

    @property
    def made(self) -> str:
        """The date of the record, if it comes from one; else empty."""


class claim:  # noqa: N801 - reads as a statement: `with claim("…", rung="trace"):`
    """A sentence that holds when the body runs to its end.

    Args:
        text: The sentence, as the page shows it; `backticks` mark code.
        rung: The rung that proves it, one of `RUNGS`.
        given: What the assertions look at, if it may come from a record (`compilers.records`): a
            claim about a record is shown as not checked in this build.

    Raises:
        ValueError: The sentence is empty, or no rung has that name.

    An exception of the body passes through with a note that holds the sentence. There is one
    exception from that: an assertion on the compile rung, where there is no compiler to ask.
    """

    def __init__(self, text: str, *, rung: str, given: Known | None = None) -> None:
        self.text = " ".join(text.split())
        if not self.text:
            raise ValueError("a claim needs a sentence; its text is empty")
        self.rung = _checked_rung(rung)
        self.recorded = given.made if given is not None else ""

    def __enter__(self) -> Self:
        _open_rungs.append(self.rung)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        _open_rungs.pop()
        if error is None and self.recorded:
            remark = f"not checked in this build: from a record of {self.recorded}"
            self._emit("unproved", remark)
            return False
        if error is None:
            self._emit("claim", "")
            return False
        if self.rung == "compile" and isinstance(error, AssertionError) and not _compiler_is_here():
            self._emit("unproved", "not checked in this build: libtpu is not installed here")
            return True
        error.add_note(f"while proving the claim: {self.text} (rung: {self.rung})")
        return False

    def _emit(self, kind: Literal["claim", "unproved"], remark: str) -> None:
        record, html = _record_and_html(kind, self.text, self.rung, remark)
        _show(record, html, f"[{self.rung}] {self.text}{remark and f' ({remark})'}")


class refuses:  # noqa: N801 - reads as a statement: `with refuses(ValueError, match="…"):`
    """Code that must be refused with this type of error and this message.

    Args:
        expected: The exception type; a subclass will do.
        match: A regular expression that the message must contain (`re.search`).
        rung: The rung on which the refusal happens; the enclosing claim's when it is left out.

    Attributes:
        type: Name of the exception type that came, after the block.
        message: Its whole message, after the block.

    Raises:
        AssertionError: Nothing was raised, another type was, or the message differs.
    """

    def __init__(self, expected: type[Exception], *, match: str, rung: str | None = None) -> None:
        if not match:
            raise ValueError("refuses needs match=, a part of the message that must come")
        re.compile(match)
        self.expected = expected
        self.match = match
        self.rung = "" if rung is None else _checked_rung(rung)
        self.type = ""
        self.message = ""

    def __enter__(self) -> Self:
        if not self.rung and _open_rungs:
            self.rung = _open_rungs[-1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        wanted = f"{self.expected.__name__} with a message like {self.match!r}"
        if error is None:
            raise AssertionError(f"expected {wanted}; nothing was raised")
        if not isinstance(error, Exception):
            return False
        self.type = type(error).__name__
        self.message = str(error)
        if not isinstance(error, self.expected):
            raise AssertionError(
                f"expected {wanted}; {self.type} was raised instead: {self.first_line}"
            ) from error
        if not re.search(self.match, self.message):
            raise AssertionError(
                f"expected {wanted}; the message was another: {self.message!r}"
            ) from error
        self._emit()
        return True

    @property
    def first_line(self) -> str:
        """The first line of the message that holds something."""
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")

    def _emit(self) -> None:
        message = _lasting(self.message)
        first_line = _lasting(self.first_line)
        text = f"{self.type}: {first_line}"
        name = anchor("refusal", text)
        count = _refusals[name] = _refusals.get(name, 0) + 1
        name = name if count == 1 else f"{name}-{count}"
        badge = f" {_badge(self.rung)}" if self.rung else ""
        html = (
            f'<div class="pr-refusal" id="{name}" role="note">'
            f'<p class="pr-refusal-title">Refused, as expected{badge} '
            f"<code>{escape(self.type)}</code></p>"
            f'<p class="pr-refusal-message"><code>{escape(first_line)}</code></p></div>'
        )
        record = {
            "kind": "refusal",
            "text": text,
            "rung": self.rung,
            "anchor": name,
            "type": self.type,
            "message": message,
        }
        _show(record, html, f"refused, as expected: {text}")
