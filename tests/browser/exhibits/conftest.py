"""A built page with the exhibit, and browsers to look at it with."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def _site_module() -> Any:
    path = Path(__file__).with_name("site.py")
    spec = importlib.util.spec_from_file_location("exhibit_site", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def build_site() -> Callable[..., Path]:
    """Build the two-page site under a folder; see `site.build`."""
    return _site_module().build


@pytest.fixture(scope="session")
def site(build_site, tmp_path_factory, node) -> Path:
    """The built site's folder."""
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def open_page(browser, site) -> Iterator[Callable[..., Any]]:
    """Open the site's page from disk; any script error, console message or request away from disk
    fails the test at its end.
    """
    complaints: list[str] = []
    contexts = []

    def opened(fragment: str = "", page: str = "index.html", **context: Any) -> Any:
        context.setdefault("viewport", {"width": 1000, "height": 900})
        contexts.append(browser.new_context(**context))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: complaints.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: complaints.append(f"script error: {error}"))
        tab.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:"))
                else complaints.append(f"request: {request.url}")
            ),
        )
        tab.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
        tab.goto((site / page).as_uri() + fragment)
        return tab

    yield opened
    for one in contexts:
        one.close()
    assert complaints == []
