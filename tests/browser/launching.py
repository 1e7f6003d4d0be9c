"""A headless Chromium, started by Playwright."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Quiet: what Chromium itself asks of the network must not be taken for a page's request."""


@contextmanager
def launched(chromium: str) -> Iterator[Browser]:
    """Start a browser, and end it.

    Playwright can be started once in a thread.

    Args:
        chromium: path of the executable.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(_ARGUMENTS))
        yield browser
        browser.close()
