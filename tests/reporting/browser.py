"""Headless Chromium for tests of the page."""

import os
import shutil
from pathlib import Path

import pytest

REQUIRE = "JAXMETER_REQUIRE_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*-cpu-*/run.json"))
"""Folders of real runs."""


def find_chromium():
    """The path of the system's Chromium. Without one the test is skipped, or fails where one is required."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    return path or miss(f"no Chromium on PATH (looked for {', '.join(NAMES)})")


def miss(reason):
    """What becomes of a test that lacks something."""
    if os.environ.get(REQUIRE) in (None, "", "0"):
        pytest.skip(f"{reason}; {REQUIRE}=1 makes this a failure")
    pytest.fail(f"{reason}, and {REQUIRE} is set")


class Visit:
    """An opened page, with everything that it did: console messages, dialogs, errors, requests."""

    def __init__(self, browser, path, *, width=1280, scheme="light", javascript=True):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=javascript
        )
        self.page = context.new_page()
        self.noise, self.requests = [], []
        self.page.on("console", lambda message: self.noise.append(message.text))
        self.page.on("pageerror", lambda error: self.noise.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.noise.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url.split(",")[0]))
        self.page.goto(path.as_uri())
