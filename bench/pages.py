"""The weight of pages: gzipped bytes of each page with everything that it links on this site."""

import gzip
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """Collects what a browser fetches to show a page: styles, scripts, pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes the address that a tag makes the browser fetch."""
        values = dict(attrs)
        rel = set((values.get("rel") or "").split())
        if tag == "link" and rel & {"stylesheet", "icon", "preload", "modulepreload"}:
            self.found.append(values.get("href") or "")
        elif tag in {"script", "img", "source", "iframe", "audio", "video", "embed"}:
            self.found.append(values.get("src") or "")


def is_local(address: str) -> bool:
    """Tells whether an address is a file of the site."""
    parts = urlsplit(address)
    return bool(parts.path) and not parts.scheme and not parts.netloc


def linked(file: Path, addresses: list[str]) -> Iterator[Path]:
    """Yields the files of the site that addresses in a file lead to."""
    for address in addresses:
        if is_local(address):
            target = (file.parent / unquote(urlsplit(address).path)).resolve()
            if target.is_file():
                yield target


def addresses_in(file: Path) -> list[str]:
    """Returns the addresses that a page or a style makes the browser fetch."""
    text = file.read_text("utf-8", errors="replace")
    if file.suffix == ".html":
        parser = Links()
        parser.feed(text)
        return parser.found
    if file.suffix == ".css":
        return [a.strip("\"' ") for a in re.findall(r"url\(([^)]+)\)", text)]
    return []


@cache
def gzipped(file: Path) -> int:
    """Returns a file's size in bytes as a server would send it."""
    return len(gzip.compress(file.read_bytes(), 9))


def weigh(page: Path) -> tuple[int, dict[Path, int]]:
    """Returns the bytes of a page with everything that it links, and each file's share."""
    todo, seen = [page.resolve()], dict[Path, int]()
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen[file] = gzipped(file)
        if file.suffix == ".css" or file == page.resolve():
            todo += linked(file, addresses_in(file))
    return sum(seen.values()), seen


def page_weights(site: Path) -> dict[str, Any]:
    """Weighs every page of a built site.

    Raises:
        FileNotFoundError: The site is not built.
    """
    pages = sorted((site / "book").rglob("*.html"))
    if not pages:
        raise FileNotFoundError(f"no pages under {site / 'book'}; run: make book")
    weights: dict[str, dict[str, Any]] = {}
    for page in pages:
        total, parts = weigh(page)
        heaviest = sorted(parts.items(), key=lambda part: -part[1])[:3]
        weights[str(page.relative_to(site))] = {
            "kilobytes": round(total / 1000, 1),
            "page_alone_kilobytes": round(parts[page.resolve()] / 1000, 1),
            "files": len(parts),
            "heaviest": {f.name: round(size / 1000, 1) for f, size in heaviest},
        }
    return {
        "method": "gzip -9 of the page and of each local file that it links, fonts in styles too",
        "pages": weights,
        "heaviest_kilobytes": max(w["kilobytes"] for w in weights.values()),
    }
