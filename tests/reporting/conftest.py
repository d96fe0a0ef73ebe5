"""What tests of the page share."""

import pytest

from tests.reporting.browser import ARGUMENTS, find_chromium, miss


@pytest.fixture(scope="session")
def chromium():
    """A running browser."""
    path = find_chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        miss("playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()
