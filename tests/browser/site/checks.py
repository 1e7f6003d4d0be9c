"""What a reader's browser must find on every page; each check returns what is wrong, in lines."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

BUDGET = 200_000
"""Bytes of a chapter page with everything it loads, gzipped."""
PACKED = {".woff2", ".png", ".jpg", ".webp", ".gif"}


def pages_of(site: Path) -> list[str]:
    """Every page of the site, as paths relative to it; the front door only leads on."""
    return sorted(
        path.relative_to(site).as_posix()
        for path in site.rglob("*.html")
        if path.relative_to(site).as_posix() != "index.html"
    )


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder on this machine alone; yields the address without a slash at its end."""
    handler = functools.partial(_Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Watch:
    """What happened on a page while it was open."""

    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def follow(self, page: Page, *, measure: bool = False) -> None:
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.said.append(f"script error: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("requestfailed", lambda request: self.said.append(f"failed: {request.url}"))
        page.on("response", lambda response: self._response(response, measure))

    def _console(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.said.append(f"console {kind}: {text}")

    def _response(self, response, measure: bool) -> None:
        if response.status >= 400:
            self.said.append(f"{response.status}: {response.url}")
        elif measure and response.url.startswith("http"):
            body = response.body()
            packed = Path(urlsplit(response.url).path).suffix in PACKED
            self.sizes[response.url] = len(body if packed else gzip.compress(body, 9))


def open_page(context: BrowserContext, address: str, *, measure: bool = False):
    """Open a page and let it settle; returns it with what happened."""
    page, watch = context.new_page(), Watch()
    watch.follow(page, measure=measure)
    page.goto(address, wait_until="networkidle")
    return page, watch


SIDEWAYS = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) { return []; }
  const inABoxThatScrolls = (element) => {
    for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
      if (getComputedStyle(box).overflowX !== "visible") { return true; }
    }
    return false;
  };
  const wide = [...document.body.querySelectorAll("*")].filter(
    (e) => e.getBoundingClientRect().right > width + 1 && !inABoxThatScrolls(e));
  return wide.slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).concat("scrolls sideways");
}"""


@dataclass
class Survey:
    """What one page is like in every colour mode and width that is looked at.

    Attributes:
        complaints: script errors, failed loads, requests to anywhere but the site itself.
        barriers: what axe finds, each line with mode and width.
        sideways: what makes the page scroll sideways, each line with the width.
        sizes: bytes of the page and all that it loads, gzipped as a server would send them.
    """

    complaints: list[str]
    barriers: list[str]
    sideways: list[str]
    sizes: dict[str, int]


def survey(browser: Browser, base: str, name: str) -> Survey:
    """Open a page once, and look at it light and dark, wide and narrow."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    page, watch = open_page(context, f"{base}/{name}", measure=True)
    page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
    barriers, sideways = [], []
    for width in (1280, 768, 360, 320):
        page.set_viewport_size({"width": width, "height": 900})
        sideways += [f"{width} px: {line}" for line in page.evaluate(SIDEWAYS)]
        for mode in ("light", "dark") if width in (1280, 360) else ():
            page.emulate_media(color_scheme=mode)
            barriers += [f"{mode}, {width} px: {line}" for line in _axe(page)]
    context.close()
    outside = [url for url in watch.asked if not url.startswith((f"{base}/", "data:", "blob:"))]
    complaints = [*watch.said, *(f"asks another host: {url}" for url in outside)]
    return Survey(complaints, barriers, sideways, watch.sizes)


def _axe(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:160]} {_contrast(node)}"
        for rule in found
        for node in rule["nodes"][:5]
    ]


def _contrast(node) -> str:
    data = [c["data"] for c in node.get("any", []) if isinstance(c.get("data"), dict)]
    return " ".join(
        f"{d['fgColor']} on {d['bgColor']}: {d['contrastRatio']}" for d in data if "fgColor" in d
    )


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(given["id"] or "")
        if tag == "a" and given.get("name"):
            self.ids.add(given["name"] or "")
        for key in ("href", "src"):
            if given.get(key) and tag != "base":
                self.targets.append(given[key] or "")


def dead_links(site: Path) -> list[str]:
    """Links and fragments within the site that lead nowhere."""
    read: dict[str, _Links] = {}
    for path in site.rglob("*.html"):
        page = _Links()
        page.feed(path.read_text("utf8"))
        read[path.relative_to(site).as_posix()] = page
    dead = []
    for name, page in sorted(read.items()):
        for target in page.targets:
            if urlsplit(target).scheme or target.startswith("//"):
                continue
            full = urlsplit(urljoin(f"http://site/{name}", target))
            path = unquote(full.path).lstrip("/")
            if not (site / path).is_file():
                dead.append(f"{name}: {target} is not there")
            elif full.fragment and path in read and unquote(full.fragment) not in read[path].ids:
                dead.append(f"{name}: {target} has no such place")
    return dead
