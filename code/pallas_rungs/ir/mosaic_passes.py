"""Mosaic's passes inside libtpu: a kernel's module before and after each, and what changed."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Final

from pallas_rungs.ir.errors import IRError

_OPERATION: Final = re.compile(r"^\s*(?:%[^=]+ = )?\"?([a-z]\w*\.[\w.]+)\"?", re.MULTILINE)
_NUMBERED: Final = re.compile(r"(%[A-Za-z]\w*?)(?:_\d+)+\b")
_LAYOUT: Final = re.compile(r'#mosaic_tc\.vpad<"([^"]*)">')
_SIGNATURE: Final = re.compile(r" attributes \{dimension_semantics.*\} \{$")
_STYLE: Final = (
    ".pr-diff{overflow-x:auto;font:400 .85rem/1.5 monospace;margin:1rem 0}"
    ".pr-diff div{white-space:pre;padding:0 .5rem;border-left:4px solid transparent}"
    ".pr-diff .pr-gone{border-color:var(--pr-bad,#a81e2b)}"
    ".pr-diff .pr-new{border-color:var(--pr-good,#22692f);font-weight:600}"
)


@dataclass(frozen=True)
class Diff:
    """What a pass changed.

    Attributes:
      lines: (mark, line) with the marks of a diff: `-` gone, `+` new, a blank kept.
      name: the pass, as a page's reader hears it.
    """

    lines: tuple[tuple[str, str], ...]
    name: str = "a pass"

    def __str__(self) -> str:
        return "\n".join(f"{mark} {line}" for mark, line in self.lines)

    def _repr_html_(self) -> str:
        kinds = {"-": "pr-gone", "+": "pr-new", " ": "pr-kept"}
        rows = "".join(
            f'<div class="{kinds[mark]}">{mark} {escape(line)}</div>' for mark, line in self.lines
        )
        return (
            f"<style>{_STYLE}</style>"
            f'<div class="pr-diff" role="region" tabindex="0" '
            f'aria-label="What {escape(self.name)} changed">{rows}</div>'
        )


@dataclass(frozen=True)
class Pass:
    """One pass over a module.

    Attributes:
      name: as in the names of the files, `infer-vector-layout`.
      before: the module's text before it.
      after: and after it.
    """

    name: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Whether it changed the text at all."""
        return self.before != self.after

    def diff(self, context: int = 0) -> Diff:
        """The changed lines, `shortened`; another number in a value's name is no change.

        Args:
          context: how many kept lines to show around them.
        """
        before, after = (
            shortened(_NUMBERED.sub(r"\1", text)).splitlines() for text in (self.before, self.after)
        )
        lines = difflib.unified_diff(before, after, lineterm="", n=context)
        kept = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        return Diff(tuple((line[:1], line[1:].strip()) for line in kept), self.name)

    def operations(self) -> tuple[Counter[str], Counter[str]]:
        """How many there are of each operation, before and after."""
        return operations(self.before), operations(self.after)


def shortened(text: str) -> str:
    """A module's text with layouts as bare strings and without the attributes of the kernel.

    `#mosaic_tc.vpad<"32,{0,0},(8,128)">` becomes `32,{0,0},(8,128)`.
    """
    lines = (_SIGNATURE.sub(" …", line) for line in text.splitlines())
    return _LAYOUT.sub(r"\1", "\n".join(lines)).replace(" {strides = array<i32>}", "")


def layouts(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The layouts that were inferred for each operation's results.

    Returns:
      (operation, layouts of its results) in the order of the text, of every operation that has any
      that is not `none`.
    """
    found = []
    for line in text.splitlines():
        _, said, rest = line.partition("out_layout = [")
        operation = _OPERATION.match(line)
        results = tuple(_LAYOUT.findall(rest.partition("]}")[0].partition("], ")[0]))
        if said and operation and set(results) - {"none"}:
            found.append((operation[1], results))
    return tuple(found)


def operations(text: str) -> Counter[str]:
    """How many there are of each operation with a dialect's name in a module's text."""
    return Counter(_OPERATION.findall(text))


def read_passes(texts: Iterable[tuple[str, str]], name: str) -> tuple[Pass, ...]:
    """Pair each pass's module with the one before it.

    Args:
      texts: (file's label, text) in the order of the passes: `original`, then `post-…`.
      name: what to call them in an error.

    Raises:
      IRError: there is no `original`, a label is no pass's, or a text is no module.
    """
    passes: list[Pass] = []
    before: str | None = None
    for label, text in texts:
        if not re.search(r"^module\b", text, re.MULTILINE):
            raise IRError(f"{name}, {label}", "a line that begins with `module`", repr(text[:60]))
        if label == "original":
            before = text
        elif before is not None:
            if not label.startswith("post-"):
                raise IRError(name, "a label that begins with `post-`", repr(label))
            passes.append(Pass(label.removeprefix("post-"), before, text))
            before = text
    if not passes:
        raise IRError(name, "the module `original` and one after it", "fewer")
    return tuple(passes)
