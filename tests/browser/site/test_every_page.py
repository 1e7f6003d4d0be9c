"""Checks of all pages of the built site."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from browser.launching import launched

from . import checks


@pytest.fixture(scope="module")
def surveys(chromium, base, pages):
    """Every page of the site, looked at once, by as many browsers as there are cores."""
    browsers = min(os.cpu_count() or 1, 4)

    def surveyed(names):
        with launched(chromium) as browser:
            return {name: checks.survey(browser, base, name) for name in names}

    with ThreadPoolExecutor(browsers) as pool:
        parts = pool.map(surveyed, (pages[first::browsers] for first in range(browsers)))
        return {name: found for part in parts for name, found in part.items()}


def assert_none(found):
    wrong = [f"{name}: {line}" for name, lines in found.items() for line in lines]
    assert not wrong, "\n".join(["", *wrong])


def test_no_page_logs_an_error_or_asks_another_host(surveys):
    assert_none({name: survey.complaints for name, survey in surveys.items()})


def test_axe_finds_nothing_in_light_or_dark(surveys):
    assert_none({name: survey.barriers for name, survey in surveys.items()})


def test_no_page_scrolls_sideways(surveys):
    assert_none({name: survey.sideways for name, survey in surveys.items()})


def test_every_chapter_stays_in_the_weight_budget(surveys, chapters):
    heavy = {}
    for name in chapters:
        sizes = surveys[name].sizes
        if (total := sum(sizes.values())) > checks.BUDGET:
            parts = sorted(sizes.items(), key=lambda item: -item[1])
            heavy[name] = [f"{total} bytes", *(f"{size:>8} {url}" for url, size in parts)]
    assert_none(heavy)


def test_no_link_of_the_site_is_dead(site):
    assert checks.dead_links(site) == []
