"""The ``excerpt`` directive: lines of an installed package, drawn into a page, with notes.

.. code-block:: markdown

    ```{excerpt} jax._src.pallas.core:_get_start_index
    :caption: Where a block starts
    - algorithm "return block_size * i": the start is the index times the block size.
    - schedule "@match": the kind is known when the kernel is traced; it costs nothing when it runs.
    ```

The argument is ``module:symbol``; the symbol ``<module>`` stands for the module's own statements.
Options: ``start`` and ``end`` (anchors of the first and last line shown, both inside the symbol)
and ``caption``. The body is a list of notes, each ``- kind "anchor": text``; indented lines go on
with the note above. Anchors are text or ``@syntax`` that occurs exactly once, see
`pallas_rungs.walk.anchors`.

A page that holds an excerpt is read again when the installed package's version or source changes.
Anything missing or ambiguous ends the build, with or without ``-W``. Where the package is an
optional extra that is not on this machine, the page says so in the excerpt's place, and keeps its
notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.parsers.rst.states import MarkupError
from markdown_it import MarkdownIt
from myst_parser.parsers.directives import parse_directive_text
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

import pallas_rungs.walk
from pallas_rungs.extras import INSTALLED_BY
from pallas_rungs.walk import (
    AbsentExtraError,
    ExcerptError,
    Note,
    Passage,
    excerpt,
    installed_module,
)
from pallas_rungs.walk.markup import excerpt_html, inline_html

_NOTE = re.compile(
    r"""^-\s+(?P<kind>\w+)\s+(?P<quote>["'`])(?P<anchor>.+?)(?P=quote)\s*:\s+(?P<text>.*)$"""
)
_ASSETS = Path(pallas_rungs.walk.__file__).parent / "assets"


def parse_notes(lines: Sequence[str]) -> list[Note]:
    """Read the notes in a directive's body.

    Args:
        lines: the body. Each note starts with ``- kind "anchor": text``; the anchor may stand in
            double quotes, single quotes or backticks, whichever it does not contain.

    Raises:
        ExcerptError: if a line fits neither a note nor the continuation of one.
    """
    read: list[tuple[str, str, list[str]]] = []
    for line in lines:
        if not line.strip():
            continue
        if found := _NOTE.match(line):
            read.append((found["kind"], found["anchor"], [found["text"]]))
        elif read and line[0] in " \t":
            read[-1][2].append(line.strip())
        else:
            raise ExcerptError(
                f'cannot read {line!r} as a note. Write: - algorithm "anchor text": what it says '
                "(or schedule), and indent lines that go on."
            )
    return [Note(anchor, " ".join(text), kind) for kind, anchor, text in read]  # type: ignore[arg-type]


class ExcerptDirective(SphinxDirective):
    """Draw an excerpt of an installed package; see the module's docstring."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "start": directives.unchanged_required,
        "end": directives.unchanged_required,
        "caption": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return the excerpt as one raw HTML node.

        Raises:
            ExtensionError: with page and line, for anything missing or ambiguous.
        """
        try:
            return [self._drawn()]
        except AbsentExtraError as absent:
            return [self._absent(absent.extra)]
        except ExcerptError as error:
            place = f"{self.env.doc2path(self.env.docname, base=False)}:{self.lineno}"
            raise ExtensionError(f"{place}: excerpt: {error}", modname=__name__) from None

    def _drawn(self) -> nodes.Node:
        module, passage = _target(self.arguments[0], self.options)
        drawn = excerpt(
            module,
            passage.symbol,
            start=passage.start,
            end=passage.end,
            notes=parse_notes(list(self.content)),
            caption=self.options.get("caption", ""),
        )
        self.env.note_dependency(str(drawn.origin.path))
        _drawn_modules(self.env).setdefault(self.env.docname, {})[module] = drawn.origin.digest
        name = re.sub(r"[^A-Za-z0-9]+", "-", drawn.symbol.split(".")[-1]).strip("-")
        serial = self.env.new_serialno("excerpt")
        ident = f"excerpt-{name}" if serial == 0 else f"excerpt-{name}-{serial + 1}"
        return nodes.raw("", excerpt_html(drawn, ident=ident), format="html")

    def _absent(self, extra: str) -> nodes.Node:
        """Say that the excerpt's package is not here; its notes are the book's own words."""
        module, passage = _target(self.arguments[0], self.options)
        _drawn_modules(self.env).setdefault(self.env.docname, {})[module] = ""
        caption = self.options.get("caption", "")
        said = "".join(
            f'<li class="pr-note pr-note-{note.kind}"><span class="pr-note-text">'
            f'<span class="pr-note-kind">{note.kind}</span> {inline_html(note.text)}</span></li>'
            for note in parse_notes(list(self.content))
        )
        parts = [
            f'<figcaption class="pr-excerpt-caption">{inline_html(caption)}</figcaption>'
            if caption
            else "",
            '<p class="pr-excerpt-source">Not drawn in this build, where '
            f"{extra} is not installed: <code>{escape(passage.symbol)}</code> of <code>{module}"
            f"</code>. To install it: <code>{INSTALLED_BY[extra]}</code>.</p>",
            f'<ul class="pr-notes">{said}</ul>' if said else "",
        ]
        return nodes.raw("", f'<figure class="pr-excerpt">{"".join(parts)}</figure>', format="html")


@dataclass(frozen=True)
class PagePassage:
    """A passage that a page draws.

    Attributes:
        module: the installed module that it is drawn from.
        passage: symbol and anchors.
        line: the page's line, from 1, on which the directive opens.
    """

    module: str
    passage: Passage
    line: int


def passages_on(page: str) -> list[PagePassage]:
    """Find the passages that a page's ``excerpt`` directives draw, in order.

    Directives inside other directives count too. One that cannot be read is left out here; the
    build says what is wrong with it when it comes to it.

    Args:
        page: the page's text.
    """
    return list(_passages(page, 0))


def _passages(text: str, above: int) -> Iterator[PagePassage]:
    for token in MarkdownIt("commonmark").parse(text):
        if token.type != "fence" or token.map is None:
            continue
        name, _, rest = token.info.strip().partition(" ")
        line = above + token.map[0] + 1
        if name == "{excerpt}":
            try:
                read = parse_directive_text(ExcerptDirective, rest, token.content)
                module, passage = _target(rest, read.options)
            except (ExcerptError, MarkupError):
                continue
            yield PagePassage(module, passage, line)
        elif name.startswith("{") and name != "{code-cell}":
            yield from _passages(token.content, line)


def _target(argument: str, options: Mapping[str, str]) -> tuple[str, Passage]:
    """Read module and passage from a directive's argument and options.

    Raises:
        ExcerptError: the argument is not of the form ``module:symbol``.
    """
    target = argument.strip()
    module, colon, symbol = target.partition(":")
    if not (module and colon and symbol):
        raise ExcerptError(f"{target!r} is not of the form module:symbol")
    start, end = (_unquoted(options.get(name)) for name in ("start", "end"))
    return module, Passage(symbol, start=start, end=end)


def _unquoted(anchor: str | None) -> str | None:
    if anchor and len(anchor) > 1 and anchor[0] == anchor[-1] and anchor[0] in "\"'`":
        return anchor[1:-1]
    return anchor


def _drawn_modules(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """Page -> module -> digest of the installed source that the page was made from."""
    if not hasattr(env, "pr_excerpts"):
        env.pr_excerpts = {}  # type: ignore[attr-defined]
    found: dict[str, dict[str, str]] = env.pr_excerpts  # type: ignore[attr-defined]
    return found


def changed_pages(env: BuildEnvironment) -> list[str]:
    """Pages whose excerpts were drawn from other text or another version than is installed."""

    def current(module: str) -> str:
        try:
            return installed_module(module).digest
        except ExcerptError:
            return ""

    pages = _drawn_modules(env)
    now = {module: current(module) for drawn in pages.values() for module in drawn}
    return [page for page, drawn in pages.items() if any(now[m] != d for m, d in drawn.items())]


def _outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    return [page for page in changed_pages(env) if page not in removed]


def _purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _drawn_modules(env).pop(docname, None)


def _merge(
    app: Sphinx, env: BuildEnvironment, docnames: Iterable[str], other: BuildEnvironment
) -> None:
    theirs = _drawn_modules(other)
    _drawn_modules(env).update({page: theirs[page] for page in docnames if page in theirs})


def _add_assets(app: Sphinx) -> None:
    app.config.html_static_path.append(str(_ASSETS))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive, its stylesheet, and the tracking of installed sources."""
    app.add_directive("excerpt", ExcerptDirective)
    app.add_css_file("pr-excerpt.css")
    app.connect("builder-inited", _add_assets)
    app.connect("env-get-outdated", _outdated)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
