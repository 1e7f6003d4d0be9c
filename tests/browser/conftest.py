"""One headless Chromium for all tests that look at pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from browser.launching import launched


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless Chromium, which all tests share."""
    with launched(chromium) as browser:
        yield browser
