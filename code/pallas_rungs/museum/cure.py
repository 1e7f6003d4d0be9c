"""What a cure changes: the lines of a bug's `broken` that go, and those of `fixed` that come."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from dataclasses import dataclass
from html import escape
from types import ModuleType

from pallas_rungs.figures.theme import stylesheet

_CONTEXT = 2
"""Lines shown around a change."""

_SIGNS = {"-": ("del", "−"), "+": ("ins", "+"), " ": ("span", " ")}
_CSS = (
    ".pr-figure .pr-cure{margin:0;padding:.7rem 0;background:var(--f-panel);border-radius:6px;"
    "font:400 .82rem/1.5 var(--f-mono);white-space:pre-wrap;overflow-wrap:anywhere}"
    ".pr-figure .pr-cure>*{display:block;padding:0 .9rem 0 2.2rem;text-indent:-1.4rem;"
    "text-decoration:none;color:var(--f-text)}"
    ".pr-figure .pr-cure del{background:var(--f-bad-bg)}"
    ".pr-figure .pr-cure ins{background:var(--f-good-bg)}"
)


@dataclass(frozen=True)
class Cure:
    """The difference between a bug and its cure.

    Attributes:
        name: the bug.
        lines: pairs of a sign (``-``, ``+`` or a space) and a line of code; an ellipsis stands for
            lines that were left out.
    """

    name: str
    lines: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "\n".join(f"{sign} {line}".rstrip() for sign, line in self.lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<{_SIGNS[sign][0]}>{_SIGNS[sign][1]} {escape(line, quote=False)}</{_SIGNS[sign][0]}>"
            for sign, line in self.lines
        )
        css = stylesheet(_CSS) + _CSS
        return f'<div class="pr-figure"><style>{css}</style><pre class="pr-cure">{rows}</pre></div>'


def cure(bug: ModuleType) -> Cure:
    """Return what `fixed` and its kernel change in `broken` and its own.

    Docstrings are left out, and lines that differ in the words *broken* and *fixed* alone count as
    equal.

    Args:
        bug: a module of the museum.

    Raises:
        ValueError: the module's two variants do not differ.
    """
    lines: list[tuple[str, str]] = []
    for before, after in (("broken_kernel", "fixed_kernel"), ("broken", "fixed")):
        if hasattr(bug, before) and hasattr(bug, after):
            part = _difference(_code(getattr(bug, before)), _code(getattr(bug, after)))
            lines += [(" ", "…")] if part and lines else []
            lines += part
    name = bug.__name__.rpartition(".")[2]
    if not lines:
        raise ValueError(f"{name}: broken and fixed are the same code; there is no cure to show")
    return Cure(name, tuple(lines))


def _difference(before: list[str], after: list[str]) -> list[tuple[str, str]]:
    matcher = difflib.SequenceMatcher(
        None, [_neutral(b) for b in before], list(map(_neutral, after))
    )
    lines: list[tuple[str, str]] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        lines += [(" ", "…")] if lines else []
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += [(" ", line) for line in after[c:d]]
            else:
                lines += [("-", line) for line in before[a:b]] + [
                    ("+", line) for line in after[c:d]
                ]
    return lines


def _neutral(line: str) -> str:
    return line.replace("broken", "fixed")


def _code(function: object) -> list[str]:
    """Return the lines of a function without its docstring."""
    text = textwrap.dedent(inspect.getsource(function))  # type: ignore[arg-type]
    (node,) = ast.parse(text).body
    lines = text.rstrip().split("\n")
    assert isinstance(node, ast.FunctionDef)
    if ast.get_docstring(node) is None:
        return lines
    said = node.body[0]
    return [
        line
        for number, line in enumerate(lines, start=1)
        if not said.lineno <= number <= (said.end_lineno or said.lineno)
        and not (line == "" and number == (said.end_lineno or said.lineno) + 1)
    ]
