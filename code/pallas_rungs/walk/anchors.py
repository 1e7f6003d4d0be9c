"""Find places in Python source by name, text or syntax: never by line number.

An anchor is a string in one of two forms:

* text, e.g. ``return block_size * i``: must occur exactly once in the symbol. Runs of white space
  count as one space and lines may break anywhere, so that re-wrapped source still matches.
* syntax, e.g. ``@match``, ``@return``, ``@case:Blocked``, ``@call:split_list``: an ``@``, the name
  of a syntax node in lower case, and, where the node has one, a name. It must match exactly one
  node.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Lines `first` to `last` of a file, counted from 1, both included."""

    first: int
    last: int


class NotFoundError(LookupError):
    """A symbol or anchor does not occur; the message says where it was looked for."""


class AmbiguousError(LookupError):
    """A symbol or anchor occurs more than once; the message lists the places."""


type _Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_SYNTAX_NAMES: dict[str, tuple[type[ast.AST], ...]] = {
    "def": (ast.FunctionDef, ast.AsyncFunctionDef),
    "class": (ast.ClassDef,),
    "assign": (ast.Assign, ast.AnnAssign, ast.AugAssign),
    "case": (ast.match_case,),
    "for": (ast.For, ast.AsyncFor),
    "with": (ast.With, ast.AsyncWith),
}


def _names_bound(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return (node.name,)
        case ast.Assign():
            return tuple(t.id for t in node.targets if isinstance(t, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.TypeAlias(name=ast.Name(id=name)):
            return (name,)
    return ()


def _definitions(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ast.AST]]:
    for child in ast.iter_child_nodes(node):
        names = _names_bound(child)
        for name in names:
            yield (*path, name), child
        inside = (*path, child.name) if isinstance(child, _Definition.__value__) else path
        if isinstance(child, ast.stmt | ast.match_case | ast.ExceptHandler):
            yield from _definitions(child, inside)


def _span_of(node: ast.AST) -> Span:
    if isinstance(node, ast.match_case):
        return Span(node.pattern.lineno, node.body[-1].end_lineno or node.body[-1].lineno)
    assert isinstance(node, ast.stmt | ast.expr | ast.ExceptHandler)
    first = node.lineno
    if isinstance(node, _Definition.__value__) and node.decorator_list:
        first = min(first, *(d.lineno for d in node.decorator_list))
    return Span(first, node.end_lineno or node.lineno)


def _is_overload(node: ast.AST) -> bool:
    names = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
    return any(name.rpartition(".")[2] == "overload" for name in names)


def find_symbol(tree: ast.Module, symbol: str) -> tuple[str, Span]:
    """Find the definition of `symbol`, and return its full dotted name and lines.

    Args:
        tree: the parsed module.
        symbol: dotted name (``Class.method``, ``outer.inner``), or any unambiguous tail of one.
            Functions, classes, module- or class-level assignments and type aliases are found;
            a signature under ``@overload`` defines nothing.

    Raises:
        NotFoundError: if nothing of that name is defined.
        AmbiguousError: if several definitions match.
    """
    wanted = tuple(symbol.split("."))
    found = [
        (path, node)
        for path, node in _definitions(tree, ())
        if path[-len(wanted) :] == wanted and not _is_overload(node)
    ]
    exact = [(path, node) for path, node in found if path == wanted]
    matches = exact or found
    if not matches:
        raise NotFoundError("no definition of that name")
    if len(matches) > 1:
        places = ", ".join(f"{'.'.join(p)} (line {_span_of(n).first})" for p, n in matches[:5])
        raise AmbiguousError(f"{len(matches)} definitions match: {places}")
    path, node = matches[0]
    return ".".join(path), _span_of(node)


def statements(tree: ast.Module) -> list[tuple[ast.stmt, Span]]:
    """The module's own statements in order, each with its lines, decorators included."""
    return [(node, _span_of(node)) for node in tree.body]


def innermost_definition(tree: ast.Module, within: Span) -> str:
    """Dotted name of the innermost function or class around some lines; empty if there is none."""
    names = ""
    for path, node in _definitions(tree, ()):
        if isinstance(node, _Definition.__value__):
            span = _span_of(node)
            if span.first <= within.first and within.last <= span.last:
                names = ".".join(path)
    return names


def find_anchor(source: str, tree: ast.Module, anchor: str, within: Span) -> Span:
    """Find the lines that `anchor` names inside the lines `within`.

    Raises:
        NotFoundError: if it does not occur there, or is empty.
        AmbiguousError: if it occurs more than once there.
    """
    if anchor.startswith("@"):
        spans = list(_syntax_matches(tree, anchor[1:], within))
    else:
        spans = list(_text_matches(source, anchor, within))
    where = f"in lines {within.first} to {within.last}"
    if not spans:
        raise NotFoundError(f"nothing {where} matches")
    if len(spans) > 1:
        lines = ", ".join(str(s.first) for s in spans[:6])
        raise AmbiguousError(f"{len(spans)} places {where} match: lines {lines}")
    return spans[0]


def _text_matches(source: str, anchor: str, within: Span) -> Iterator[Span]:
    words = anchor.split()
    if not words:
        return
    lines = source.splitlines(keepends=True)
    passage = "".join(lines[within.first - 1 : within.last])
    for found in re.finditer(r"\s+".join(re.escape(w) for w in words), passage):
        before = passage.count("\n", 0, found.start())
        through = passage.count("\n", 0, found.end())
        yield Span(within.first + before, within.first + through)


def _syntax_matches(tree: ast.Module, query: str, within: Span) -> Iterator[Span]:
    kind, _, name = query.partition(":")
    types = _SYNTAX_NAMES.get(kind)
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.expr | ast.ExceptHandler | ast.match_case):
            continue
        if not (isinstance(node, types) if types else type(node).__name__.lower() == kind):
            continue
        if name and name not in _names_of(node):
            continue
        span = _span_of(node)
        if within.first <= span.first and span.last <= within.last:
            yield span


def _names_of(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return (name,)
        case ast.match_case():
            return tuple(
                ast.unparse(p.cls) for p in ast.walk(node.pattern) if isinstance(p, ast.MatchClass)
            )
    return _names_bound(node)
