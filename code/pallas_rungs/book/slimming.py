"""The finished site is looked over: nothing from another host, nothing that runs inline.

A page of this book is complete in itself: it opens from disk, and asks no other host for
anything. What a page links with ``<a href>`` may be anywhere; what it *loads* may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_rungs.book.faults import Fault, fault_log

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LOADING = {
    "src", "srcset", "poster", "background", "data", "formaction", "action", "manifest",
}  # fmt: skip
_LINK_KINDS_THAT_LOAD_NOTHING = {"canonical", "next", "prev", "search", "author", "license", "help"}
_OTHER_HOST = re.compile(r"^\s*(?:(?:https?|wss?|ftp):)?//[^/\s]", re.IGNORECASE)
_CSS_URL = re.compile(
    r"""@import\s+(?:url\(\s*)?["']?(?P<imported>[^"')\s;]+)|url\(\s*["']?(?P<url>[^"')]+)""",
    re.IGNORECASE,
)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_SCRIPT_URL = re.compile(
    r"""(?:import\s*\(|importScripts\s*\(|fetch\s*\(|\bfrom|\bimport|\.src\s*=|\.href\s*=|Worker\s*\()"""
    r"""\s*["'`](?P<url>(?:https?:)?//[^"'`\s]+)""",
)


@dataclass(frozen=True)
class OutsideAsset:
    """Something that a file of the site would load from another host.

    Attributes:
        file: the file, relative to the site.
        line: where in it, from 1.
        url: what it would load.
        how: the construct that loads it.
    """

    file: str
    line: int
    url: str
    how: str


class _Page(HTMLParser):
    """Collects what a page loads."""

    def __init__(self, file: str) -> None:
        super().__init__(convert_charrefs=True)
        self.file = file
        self.found: list[OutsideAsset] = []
        self._raw = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in {"script", "style"}:
            self._raw = tag
        for name, value in given.items():
            if name == "style":
                self._css(value, f'<{tag} style="…">')
            elif self._loads(tag, name, given):
                for url in _urls(name, value):
                    if _OTHER_HOST.match(url):
                        self._note(url, f"<{tag} {name}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._raw = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._raw:
            self._raw = ""

    def handle_data(self, data: str) -> None:
        if self._raw == "style":
            self._css(data, "<style>")
        elif self._raw == "script":
            for match in _SCRIPT_URL.finditer(data):
                self._note(match["url"], "<script>")

    def _loads(self, tag: str, name: str, given: dict[str, str]) -> bool:
        if name in _LOADING:
            return not (tag == "object" and name != "data") or name == "data"
        if name not in {"href", "xlink:href"}:
            return False
        if tag == "link":
            kinds = set(given.get("rel", "").lower().split())
            return not kinds or bool(kinds - _LINK_KINDS_THAT_LOAD_NOTHING)
        return tag in {"use", "image", "base", "feimage"}

    def _css(self, text: str, how: str) -> None:
        for url, _ in css_urls(text):
            if _OTHER_HOST.match(url):
                self._note(url, how)

    def _note(self, url: str, how: str) -> None:
        self.found.append(OutsideAsset(self.file, self.getpos()[0], url.strip(), how))


def _urls(name: str, value: str) -> list[str]:
    if name == "srcset":
        return [part.strip().split(" ")[0] for part in value.split(",") if part.strip()]
    return [value]


def css_urls(text: str) -> Iterator[tuple[str, int]]:
    """Yield what a stylesheet loads, each with its line, from 1; comments do not count."""
    bare = _CSS_COMMENT.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    for match in _CSS_URL.finditer(bare):
        yield match["imported"] or match["url"], bare.count("\n", 0, match.start()) + 1


def outside_assets(file: str, text: str) -> list[OutsideAsset]:
    """Find what one file of the site would load from another host.

    Args:
        file: its name; the ending says what it is.
        text: its content.
    """
    if file.endswith((".html", ".svg", ".xml")):
        page = _Page(file)
        page.feed(text)
        page.close()
        return page.found
    if file.endswith(".css"):
        return [
            OutsideAsset(file, line, url, "url()")
            for url, line in css_urls(text)
            if _OTHER_HOST.match(url)
        ]
    if file.endswith((".js", ".mjs")):
        return [
            OutsideAsset(file, text.count("\n", 0, match.start()) + 1, match["url"], "script")
            for match in _SCRIPT_URL.finditer(text)
        ]
    return []


def scan(site: Path) -> list[OutsideAsset]:
    """Look over all pages, stylesheets, drawings and scripts of a site."""
    found: list[OutsideAsset] = []
    for path in sorted(site.rglob("*")):
        if path.suffix in {".html", ".css", ".js", ".mjs", ".svg"} and path.is_file():
            name = path.relative_to(site).as_posix()
            found += outside_assets(name, path.read_text("utf8", errors="replace"))
    return found


def _refuse_other_hosts(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    for asset in scan(Path(app.outdir)):
        place = f"{asset.file}:{asset.line}"
        said = f"{asset.how} loads {asset.url} from another host; keep a copy in the book"
        fault_log(app).add(Fault(place, said))


def _write_front_door(app: Sphinx, exception: Exception | None) -> None:
    """Write an ``index.html`` that leads to the landing page, where that lies in a folder."""
    if exception is not None or app.builder.format != "html" or app.config.root_doc == "index":
        return
    target = app.builder.get_target_uri(app.config.root_doc)
    title = app.config.html_title
    (Path(app.outdir) / "index.html").write_text(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n"
        f'<meta http-equiv="refresh" content="0; url={target}">\n'
        '<link rel="icon" type="image/svg+xml" href="_static/favicon.svg">\n</head>\n'
        f'<body><main><h1>{title}</h1><p><a href="{target}">Open the book</a></p></main></body>\n'
        "</html>\n",
        "utf8",
    )


def setup(app: Sphinx) -> None:
    """Look over the site when it is finished; write its front door before others would."""
    app.connect("build-finished", _write_front_door, priority=100)
    app.connect("build-finished", _refuse_other_hosts, priority=960)
