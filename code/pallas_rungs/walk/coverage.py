"""Account for every line of an installed source file: what a page explains, sums up, leaves out.

A page that says that it reads a file whole must be held to it. It names the passages that it draws,
those that it sums up in a sentence, and those that it leaves out, each by anchors; what is left of
the file is counted and named. A change upstream that moves an anchor away, or adds a function,
shows up here.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pallas_rungs.walk.anchors import Span, innermost_definition, statements
from pallas_rungs.walk.errors import ExcerptError
from pallas_rungs.walk.installed import InstalledModule
from pallas_rungs.walk.located import MODULE, Located, OpenModule, Passage, open_module

EXPLAINED = "explained"
FOLDED = "folded"
SKIPPED = "skipped"
BLANK = "blank, comments"
IMPORTS = "imports"
UNACCOUNTED = "unaccounted"

CLASSES = (EXPLAINED, FOLDED, SKIPPED, BLANK, IMPORTS, UNACCOUNTED)
"""What a line of a file can be. Every line is exactly one of them."""

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Fold(Passage):
    """A passage that the page sums up.

    Attributes:
        says: the sentence, inline Markdown.
    """

    says: str


@dataclass(frozen=True)
class Skip(Passage):
    """A passage that the page leaves out.

    Attributes:
        why: the reason, inline Markdown.
    """

    why: str


@dataclass(frozen=True)
class Counted:
    """A passage, where it stands, and what it accounts for.

    Attributes:
        passage: as the page names it.
        located: where it stands.
        lines: how many lines are counted under it: those of code that nothing before it has.
        spans: the runs of these lines; blank lines and comments between them do not part a run.
    """

    passage: Passage
    located: Located
    lines: int
    spans: tuple[Span, ...]

    @property
    def words(self) -> str:
        """The sentence of a fold, the reason of a skip; empty for a passage that is drawn."""
        match self.passage:
            case Fold(says=words) | Skip(why=words):
                return words
        return ""


@dataclass(frozen=True)
class Unaccounted:
    """Lines of which the page says nothing.

    Attributes:
        span: from the first to the last of them.
        lines: how many there are; blank lines and comments in between are not counted.
        symbol: the innermost function or class around them, or ``<module>``.
    """

    span: Span
    lines: int
    symbol: str

    def __str__(self) -> str:
        return f"{_where(self.span)} of {self.symbol}"


@dataclass(frozen=True)
class FileAccount:
    """The lines of a file, each in one class.

    Attributes:
        origin: the installed module.
        classes: the class of each line, in order.
        parts: name and lines of each function and class of the module, in order.
        explained: the passages that the page draws.
        folds: those that it sums up.
        skips: those that it leaves out.
        unaccounted: what is left.
    """

    origin: InstalledModule
    classes: tuple[str, ...]
    parts: tuple[tuple[str, Span], ...]
    explained: tuple[Counted, ...]
    folds: tuple[Counted, ...]
    skips: tuple[Counted, ...]
    unaccounted: tuple[Unaccounted, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Number of lines of each class, in the order of `CLASSES`, zeros included."""
        return {name: self.classes.count(name) for name in CLASSES}

    @property
    def share(self) -> float:
        """The share of all lines that is accounted for, 0 to 1."""
        return 1 - self.share_of(UNACCOUNTED)

    def share_of(self, *names: str) -> float:
        """The share of all lines that is in some classes, 0 to 1.

        Raises:
            KeyError: if there is no such class.
        """
        return sum(self.counts[name] for name in names) / len(self.classes)

    def rows(self) -> list[tuple[str, str]]:
        """Folds and skips in the order of the file, as rows of a table with two columns.

        Those of one symbol that share their words, such as statements that register something, are
        one row.

        Returns:
            For each: the passage, which is ``folded`` or ``skipped``, its symbol as inline code and
            its lines with their number; and the sentence or reason.
        """
        told = [(FOLDED, part) for part in self.folds] + [(SKIPPED, part) for part in self.skips]
        told.sort(key=lambda pair: (pair[1].spans[0].first, pair[1].located.span.last))
        groups: dict[tuple[str, str, str], list[Counted]] = {}
        for how, part in told:
            groups.setdefault((how, part.located.symbol, part.words), []).append(part)
        return [
            (f"{how}: `{symbol}`, {_counted(parts)}", words)
            for (how, symbol, words), parts in groups.items()
        ]

    def __str__(self) -> str:
        origin = self.origin
        lines = [
            f"{origin.package} {origin.version} · {origin.relative}: {self.share:.1%} of "
            f"{len(self.classes)} lines accounted for"
        ]
        lines += [f"  {name}: {n}" for name, n in self.counts.items()]
        lines += [f"  unaccounted: {left}, {left.lines}" for left in self.unaccounted]
        return "\n".join(lines)


def whole_file(
    module: str,
    passages: Sequence[Passage],
    folds: Sequence[Fold] = (),
    skips: Sequence[Skip] = (),
) -> FileAccount:
    """Account for every line of an installed source file.

    Blank lines, comments and the module's docstring are counted by themselves wherever they stand,
    and so are the imports at the top level; none of them counts as explained. A line of code that
    several passages hold is explained rather than folded, and folded rather than skipped.

    Args:
        module: dotted name of the module. It is not imported.
        passages: what the page draws. A code cell with the option ``:passages:`` has the list of
            its page's excerpts, under the name `drawn`.
        folds: what the page sums up, a sentence each.
        skips: what the page leaves out, a reason each.

    Raises:
        ExcerptError: if the module, a symbol or an anchor is missing or ambiguous; if a fold or
            skip has no words, or accounts for no line that was not accounted for before it.
    """
    opened = open_module(module)
    classes = _without_code(opened)
    free = [name == UNACCOUNTED for name in classes]
    counted: dict[str, list[Counted]] = {EXPLAINED: [], FOLDED: [], SKIPPED: []}
    for name, role, wanted in (
        (EXPLAINED, "passage", passages),
        (FOLDED, "fold", folds),
        (SKIPPED, "skip", skips),
    ):
        for passage in wanted:
            located = opened.locate(passage, role=role)
            numbers = range(located.span.first, located.span.last + 1)
            won = [n for n in numbers if classes[n - 1] == UNACCOUNTED]
            for n in won:
                classes[n - 1] = name
            part = Counted(passage, located, len(won), tuple(_runs(won, free)))
            if name != EXPLAINED:
                _check(opened, role, part)
            counted[name].append(part)
    return FileAccount(
        origin=opened.origin,
        classes=tuple(classes),
        parts=tuple(_parts(opened)),
        explained=tuple(counted[EXPLAINED]),
        folds=tuple(counted[FOLDED]),
        skips=tuple(counted[SKIPPED]),
        unaccounted=tuple(_left(opened, classes, free)),
    )


def _check(opened: OpenModule, role: str, part: Counted) -> None:
    place = f"{opened.where}, symbol {part.located.symbol}: the {role}"
    if not part.words.strip():
        what = "sentence" if role == "fold" else "reason"
        raise ExcerptError(f"{place} has no {what}; write it, or remove the {role}")
    if not part.lines:
        raise ExcerptError(
            f"{place} of {_where(part.located.span)} accounts for no line: the page draws all of "
            f"them, or a fold or skip before it has them. Remove the {role}."
        )


def _without_code(opened: OpenModule) -> list[str]:
    """The class of each line as far as no page decides it; all others are unaccounted."""
    source = opened.origin.source
    lines = [BLANK] * len(source.splitlines())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            for n in range(token.start[0], token.end[0] + 1):
                lines[n - 1] = UNACCOUNTED
    for place, (node, span) in enumerate(statements(opened.tree)):
        name = UNACCOUNTED
        if place == 0 and ast.get_docstring(opened.tree, clean=False) is not None:
            name = BLANK
        elif _imports_only(node):
            name = IMPORTS
        if name != UNACCOUNTED:
            for n in range(span.first, span.last + 1):
                lines[n - 1] = name if lines[n - 1] == UNACCOUNTED else lines[n - 1]
    return lines


def _imports_only(node: ast.stmt) -> bool:
    """Whether a statement imports, or decides what to import, and does nothing else."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.If(body=body, orelse=other):
            return all(map(_imports_only, [*body, *other]))
        case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=[]):
            handled = [inner for handler in handlers for inner in handler.body]
            return all(map(_imports_only, [*body, *other])) and all(
                isinstance(inner, ast.Pass) or _imports_only(inner) for inner in handled
            )
    return False


def _runs(numbers: Sequence[int], code: Sequence[bool]) -> Iterator[Span]:
    """Runs of line numbers; lines without code in between do not part a run."""
    first = last = 0
    for n in numbers:
        if first and not any(code[last : n - 1]):
            last = n
            continue
        if first:
            yield Span(first, last)
        first = last = n
    if first:
        yield Span(first, last)


def _parts(opened: OpenModule) -> Iterator[tuple[str, Span]]:
    for node, span in statements(opened.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, span


def _left(
    opened: OpenModule, classes: Sequence[str], code: Sequence[bool]
) -> Iterator[Unaccounted]:
    """Runs of unaccounted lines, parted where a function or class of the module ends."""
    spans = [span for _, span in _parts(opened)]
    left = [n for n, name in enumerate(classes, 1) if name == UNACCOUNTED]

    def part(n: int) -> int:
        return next((i for i, s in enumerate(spans) if s.first <= n <= s.last), -1)

    for _, group in groupby(left, key=part):
        numbers = list(group)
        for span in _runs(numbers, code):
            symbol = innermost_definition(opened.tree, span) or MODULE
            lines = sum(span.first <= n <= span.last for n in numbers)
            yield Unaccounted(span, lines, symbol)


def _where(span: Span) -> str:
    return f"line {span.first}" if span.first == span.last else f"lines {span.first}–{span.last}"


def _counted(parts: Sequence[Counted]) -> str:
    spans = [span for part in parts for span in part.spans]
    told = ", ".join(
        str(s.first) if s.first == s.last else f"{s.first}–{s.last}" for s in spans[:3]
    )
    more = f" and {len(spans) - 3} more" if len(spans) > 3 else ""
    return f"{told}{more} ({sum(part.lines for part in parts)})"
