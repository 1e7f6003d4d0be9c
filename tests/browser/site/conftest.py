"""The built site, a browser, and a server for them."""

import os
from pathlib import Path

import pytest

from .checks import pages_of, served


@pytest.fixture(scope="session")
def site(root):
    """The folder of the built site."""
    folder = Path(os.environ.get("PALLAS_RUNGS_SITE") or root / "_build" / "html")
    if not pages_of(folder):
        pytest.fail(f"no site in {folder}: `make book` builds it", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def pages(site):
    """Every page of the site."""
    return pages_of(site)


@pytest.fixture(scope="session")
def chapters(site):
    """The pages that were executed."""
    found = [p for p in pages_of(site) if '<div class="pr-badge"' in (site / p).read_text("utf8")]
    assert found, "the site has no executed page"
    return found


@pytest.fixture(scope="session")
def base(site):
    """The site's address."""
    with served(site) as address:
        yield address
