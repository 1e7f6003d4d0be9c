"""MyST turned into the Markdown that any notebook viewer shows.

A downloaded notebook is read in Colab or Jupyter, which know nothing of directives and roles:
notes become quotations, references become links to the site, what only the site can show
becomes a sentence that says where it is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,}|:{3,})\s*(?P<info>.*?)\s*$")
_DIRECTIVE = re.compile(r"^\{(?P<name>[\w:.+-]+)\}\s*(?P<argument>.*)$")
_OPTION = re.compile(r"^:(?P<key>[\w-]+):\s*(?P<value>.*)$")
_ROLE_OR_CODE = re.compile(
    r"\{(?P<name>[a-zA-Z][\w:+-]*)\}(?P<ticks>`+)(?P<body>.+?)(?P=ticks)"
    r"|(?P<code>(?<!`)(?P<mark>`+)(?!`).+?(?<!`)(?P=mark)(?!`))"
)
_TITLED = re.compile(r"^(?P<text>.*?)\s*<(?P<target>[^<>]+)>$", re.S)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_ATTRIBUTES = re.compile(r"(?<=[\])`*_])\{[.#][^{}]*\}")
_TARGET_LINE = re.compile(r"^\([^()\s]+\)=\s*$")
_ATTRIBUTE_LINE = re.compile(r"^\{[.#][^{}]*\}\s*$")

_TITLES = {
    "note": "Note",
    "warning": "Warning",
    "tip": "Tip",
    "hint": "Hint",
    "important": "Important",
    "caution": "Caution",
    "attention": "Attention",
    "danger": "Danger",
    "error": "Error",
    "seealso": "See also",
    "margin": "",
    "sidebar": "",
    "exercise": "Exercise",
    "solution": "Solution",
}
_ON_SITE = {
    "excerpt": "An annotated excerpt of `{argument}`, from the installed package",
    "exhibit": "The interactive exhibit `{argument}`",
    "claim-count": "The number of claims on each rung",
    "claims-index": "The index of all claims",
    "coverage": "The list of what the book covers",
    "tableofcontents": "The contents",
    "toctree": "The contents",
}
_TITLED_BLOCKS = {"admonition", "dropdown", "grid-item-card", "tab-item", "card", "topic"}


@dataclass(frozen=True)
class Surroundings:
    """What the references on a page point at.

    Attributes:
        docname: the page.
        address: its full address; empty when the site has none.
        titles: titles of all pages, by docname.
        labels: for each label, the page, the HTML id and the title.
        site: the site's full address without a slash at its end.
    """

    docname: str
    address: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    site: str = ""

    def page(self, docname: str, anchor: str = "") -> str:
        """Return the address of a page or a place on it; empty when the site has no address."""
        if not self.site:
            return ""
        return f"{self.site}/{docname}.html" + (f"#{anchor}" if anchor else "")


def labels_of(app: Sphinx) -> dict[str, tuple[str, str, str]]:
    """Collect the labels of the book: the page, the HTML id and the title of each."""
    data = app.env.domaindata.get("std", {})
    found = {name: (doc, ident, "") for name, (doc, ident) in data.get("anonlabels", {}).items()}
    found |= {name: tuple(value) for name, value in data.get("labels", {}).items()}
    return found


def convert(text: str, page: Surroundings) -> str:
    """Turn MyST into plain Markdown.

    Args:
        text: Markdown with directives and roles.
        page: what its references point at.
    """
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_blocks(text.splitlines(), page)))


def _blocks(lines: list[str], page: Surroundings) -> list[str]:
    out: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        opened = _FENCE.match(line)
        if opened and (opened["info"] or opened["fence"][0] != ":"):
            end = _closing(lines, position, opened["fence"])
            inside = lines[position + 1 : end]
            directive = _DIRECTIVE.match(opened["info"])
            if directive:
                indent = opened["indent"]
                made = _directive(directive["name"], directive["argument"], inside, page)
                out += [indent + row if row else row for row in made]
            elif opened["fence"][0] == ":":
                out += _blocks(inside, page)
            else:
                out += lines[position : end + 1]
            position = end + 1
            continue
        position += 1
        if _TARGET_LINE.match(line) or _ATTRIBUTE_LINE.match(line) or line.startswith("% "):
            continue
        out.append(_inline(line, page))
    return out


def _closing(lines: list[str], start: int, fence: str) -> int:
    """Return the line that closes a fence; the last line when none does."""
    closing = re.compile(rf"^\s*{re.escape(fence[0])}{{{len(fence)},}}\s*$")
    for number in range(start + 1, len(lines)):
        if closing.match(lines[number]):
            return number
    return len(lines)


def _directive(name: str, argument: str, inside: list[str], page: Surroundings) -> list[str]:
    options, body = _options(inside)
    if name in {"code-block", "code", "sourcecode", "literalinclude"}:
        return [f"```{argument}", *body, "```"]
    if name == "math":
        return ["$$", *body, "$$"]
    if name in {"figure", "image"}:
        alt = options.get("alt", "")
        caption = _blocks(body, page)
        source = argument if "://" in argument or not page.site else ""
        shown = f"![{alt}]({source})" if source else f"*Figure: {alt}*"
        return ["", shown, "", *caption, ""]
    if name in _ON_SITE:
        sentence = _ON_SITE[name].format(argument=argument)
        link = f"[this page]({page.address})" if page.address else "the site's page"
        return [
            "",
            f"> *{sentence} is on {link}.*"
            if "`" not in sentence
            else f"> {sentence}, is on {link}.",
            "",
        ]
    if name in _TITLES or name in _TITLED_BLOCKS:
        title = argument if name in _TITLED_BLOCKS else (argument or _TITLES[name])
        quoted = _blocks(body, page)
        if options.get("link"):
            target = _resolve(options["link"], page)
            title = f"[{title}]({target})" if target else title
        head = [f"**{_inline(title, page)}**", ""] if title else []
        return ["", *("> " + row if row else ">" for row in [*head, *_trim(quoted)]), ""]
    return ["", *_blocks(body, page), ""]


def _options(inside: list[str]) -> tuple[dict[str, str], list[str]]:
    """Split a directive's lines into its options and its body."""
    options: dict[str, str] = {}
    position = 0
    if inside and inside[0].strip() == "---":
        end = next((n for n, row in enumerate(inside[1:], 1) if row.strip() == "---"), 0)
        for row in inside[1:end]:
            key, _, value = row.partition(":")
            options[key.strip()] = value.strip()
        return options, inside[end + 1 :]
    while position < len(inside) and (found := _OPTION.match(inside[position].strip())):
        options[found["key"]] = found["value"]
        position += 1
    return options, inside[position:]


def _trim(rows: list[str]) -> list[str]:
    while rows and not rows[0].strip():
        rows = rows[1:]
    while rows and not rows[-1].strip():
        rows = rows[:-1]
    return rows


def _inline(line: str, page: Surroundings) -> str:
    """Convert what stands in a line, and leave code alone."""
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    def role_or_code(match: re.Match[str]) -> str:
        return keep(match["code"] or _role(match["name"], match["body"], page))

    line = _ROLE_OR_CODE.sub(role_or_code, line)
    line = _LINK.sub(lambda match: _link(match["text"], match["target"], page), line)
    line = _ATTRIBUTES.sub("", line)
    while "\0" in line:
        line = re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], line)
    return line


def _role(name: str, body: str, page: Surroundings) -> str:
    titled = _TITLED.match(body)
    text, target = (titled["text"], titled["target"]) if titled else ("", body)
    if name == "math":
        return f"${body}$"
    if name in {"ref", "numref", "eq"}:
        docname, ident, title = page.labels.get(target.lower(), ("", "", ""))
        shown = text or title or target
        address = page.page(docname, ident) if docname else ""
        return f"[{shown}]({address})" if address else shown
    if name == "doc":
        docname = _docname(target, page)
        shown = text or page.titles.get(docname, docname)
        address = page.page(docname)
        return f"[{shown}]({address})" if address else shown
    if name in {"term", "abbr", "sub", "sup", "claims"}:
        return text or target
    if name == "kbd":
        return body
    return f"`{text or body}`"


def _link(text: str, target: str, page: Surroundings) -> str:
    address = _resolve(target, page)
    shown = text
    if not shown:
        shown = page.titles.get(_docname(target.partition("#")[0], page), target)
    return f"[{shown}]({address})" if address else shown


def _resolve(target: str, page: Surroundings) -> str:
    """Return the full address that a link of the text points at; empty when there is none."""
    if re.match(r"^[a-z]+:", target):
        return target
    path, _, anchor = target.partition("#")
    if not path:
        found = page.labels.get(anchor.lower())
        return page.page(found[0], found[1]) if found else page.page(page.docname, anchor)
    if path in page.labels:
        docname, ident, _ = page.labels[path]
        return page.page(docname, ident)
    return page.page(_docname(path, page), anchor)


def _docname(path: str, page: Surroundings) -> str:
    if path.startswith("/"):
        return path.removesuffix(".md").lstrip("/")
    folder = posixpath.dirname(page.docname)
    return posixpath.normpath(posixpath.join(folder, path.removesuffix(".md")))
