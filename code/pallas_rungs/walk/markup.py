"""HTML of an excerpt: numbered lines, notes reached by plain links, licence and permalink.

The same HTML serves the book's directive and a notebook cell. It needs no script: markers and notes
are anchors that point at each other. Token colours come from the page's Pygments stylesheet (class
``highlight``), everything else from ``assets/pr-excerpt.css``.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, _TokenType

from pallas_rungs.walk.errors import ExcerptError
from pallas_rungs.walk.excerpt import Excerpt, PlacedNote

_ROLE = re.compile(r"\{[a-z][\w:+-]*\}`")
_TARGET = re.compile(r'<a href="([^"]*)"')


def excerpt_html(drawn: Excerpt, ident: str | None = None, caption_html: str | None = None) -> str:
    """Render `drawn`.

    Args:
        drawn: what to show.
        ident: prefix of the element ids, unique on the page; made from the symbol and the first
            line if None.
        caption_html: ready-made caption; the excerpt's own caption as inline Markdown if None.

    Raises:
        ExcerptError: if a note or the caption holds a role, which only the book's own text may.
    """
    ident = ident or _slug(f"{drawn.symbol.split('.')[-1]}-{drawn.span.first}")
    caption = caption_html or (inline_html(drawn.caption) if drawn.caption else "")
    first, last = drawn.span.first, drawn.span.last
    where = f"line {first}" if first == last else f"lines {first}–{last}"
    label = f"{drawn.symbol} in {drawn.origin.relative}, {where}"
    css = "pr-excerpt pr-excerpt-noted" if drawn.notes else "pr-excerpt"
    parts = [f'<figure class="{css}" id="{ident}">']
    if caption:
        parts.append(f'<figcaption class="pr-excerpt-caption">{caption}</figcaption>')
    parts.append(
        f'<div class="pr-excerpt-code"><pre class="highlight" tabindex="0" role="region" '
        f'aria-label="{escape(label)}">{_code_html(drawn, ident)}</pre></div>'
    )
    if drawn.notes:
        items = "".join(_note_html(placed, ident) for placed in drawn.notes)
        parts.append(f'<ol class="pr-notes">{items}</ol>')
    parts.append(_source_html(drawn, where))
    parts.append("</figure>")
    return "".join(parts)


def inline_html(text: str) -> str:
    """Inline Markdown to HTML: code, emphasis, links to addresses. Raw HTML is shown as text.

    Raises:
        ExcerptError: if `text` holds a role such as ``{term}`…```, or a link to a page of the book:
            neither is resolved here.
    """
    if found := _ROLE.search(text):
        raise ExcerptError(
            f"{found.group()[:-1]!r} in a note: roles do not work there. Write the words, and put "
            f"the reference into the text around the excerpt. The note: {text!r}"
        )
    rendered: str = MarkdownIt("commonmark", {"html": False}).renderInline(" ".join(text.split()))
    for target in _TARGET.findall(rendered):
        if not target.startswith(("https://", "http://")):
            raise ExcerptError(
                f"a note links to {target!r}: only links to web addresses work there. Put the link "
                f"to a page of the book into the text around the excerpt. The note: {text!r}"
            )
    return rendered


def _slug(text: str) -> str:
    return "excerpt-" + re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def _code_html(drawn: Excerpt, ident: str) -> str:
    marks: dict[int, list[PlacedNote]] = {}
    for placed in drawn.notes:
        marks.setdefault(placed.span.first, []).append(placed)
    width = len(str(drawn.span.last))
    rows = []
    for number, html in _highlighted(drawn):
        links = "".join(_mark_html(placed, ident) for placed in marks.get(number, ()))
        css = "pr-line pr-line-noted" if number in marks else "pr-line"
        rows.append(
            f'<span class="{css}" data-line="{number}">'
            f'<span class="linenos pr-gutter"><span class="pr-lineno">{number:>{width}}</span>'
            f"{links}</span>{html}\n</span>"
        )
    return "".join(rows)


def _mark_html(placed: PlacedNote, ident: str) -> str:
    n, kind = placed.number, placed.note.kind
    return (
        f'<a class="pr-mark pr-mark-{kind}" id="{ident}-m{n}" href="#{ident}-n{n}" '
        f'aria-label="note {n}, {kind}">{n}</a>'
    )


def _note_html(placed: PlacedNote, ident: str) -> str:
    n, note = placed.number, placed.note
    return (
        f'<li class="pr-note pr-note-{note.kind}" id="{ident}-n{n}">'
        f'<a class="pr-note-back" href="#{ident}-m{n}" '
        f'aria-label="note {n}: back to line {placed.span.first}">{n}</a>'
        f'<span class="pr-note-text"><span class="pr-note-kind">{note.kind}</span> '
        f"{inline_html(note.text)}</span></li>"
    )


def _source_html(drawn: Excerpt, where: str) -> str:
    origin = drawn.origin
    place = f"<code>{escape(origin.relative)}</code>, {where}"
    if (link := drawn.permalink) is not None:
        place = f'<a href="{escape(link)}" rel="noopener">{place} at {escape(origin.tag or "")}</a>'
    holder = f" ({escape(origin.copyright)})" if origin.copyright else ""
    return (
        f'<p class="pr-excerpt-source">From the installed {escape(origin.package)} '
        f"{escape(origin.version)}: {place}. Licence: {escape(origin.licence)}{holder}.</p>"
    )


def _highlighted(drawn: Excerpt) -> list[tuple[int, str]]:
    """Highlight the whole symbol, so that strings are seen from their start; keep the shown lines.

    The indentation that all shown lines share is taken away.
    """
    text = drawn.origin.source.splitlines()
    whole = drawn.symbol_span
    code = "\n".join(text[whole.first - 1 : whole.last]) + "\n"
    lines: list[list[tuple[_TokenType, str]]] = [[]]
    lexer: Any = get_lexer_by_name("python", stripnl=False, ensurenl=False)  # type: ignore[no-untyped-call]
    for kind, value in lexer.get_tokens(code):
        for i, piece in enumerate(value.split("\n")):
            if i:
                lines.append([])
            if piece:
                lines[-1].append((kind, piece))
    shown = [(n, lines[n - whole.first]) for n in range(drawn.span.first, drawn.span.last + 1)]
    indents = [len(t) - len(t.lstrip()) for _, t in drawn.lines if t.strip()]
    cut = min(indents, default=0)
    return [(number, _tokens_html(tokens, cut)) for number, tokens in shown]


def _tokens_html(tokens: list[tuple[_TokenType, str]], cut: int) -> str:
    out = []
    for kind, value in tokens:
        if cut:
            spaces = len(value) - len(value.lstrip(" "))
            removed = min(cut, spaces)
            cut = cut - removed if removed == len(value) else 0
            value = value[removed:]
        if not value:
            continue
        css = STANDARD_TYPES.get(kind, "")
        out.append(f'<span class="{css}">{escape(value)}</span>' if css else escape(value))
    return "".join(out)
