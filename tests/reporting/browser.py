"""Headless Chromium for tests of the page."""

import os
import shutil
from pathlib import Path

import pytest

from jaxmeter.reporting.load import Loaded, load
from jaxmeter.reporting.render import html
from jaxmeter.reporting.view import build

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


def write_example(folder):
    """The page of the run in examples/ that has most results, and the run's folder."""
    runs = [load([path]).runs[0] for path in EXAMPLES]
    most = max(runs, key=lambda one: sum(len(case.variants) for case in one.manifest.cases))
    file = folder / "report.html"
    file.write_text(html.render(build(Loaded((most,), ()))), "utf-8")
    return file, most.folder.path


class Visit:
    """An opened page, with everything that it did: console messages, dialogs, errors, requests.

    Args:
      script: What runs before the page's own.
    """

    def __init__(self, browser, path, *, width=1280, scheme="light", javascript=True, script=""):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=javascript
        )
        self.page = context.new_page()
        self.noise, self.requests = [], []
        self.page.on("console", lambda message: self.noise.append(message.text))
        self.page.on("pageerror", lambda error: self.noise.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.noise.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url.split(",")[0]))
        if script:
            self.page.add_init_script(script)
        self.page.goto(path.as_uri())

    def save(self, kind):
        """The text that all results are saved as."""
        with self.page.expect_download() as download:
            self.page.locator("#all").get_by_role("button", name=kind).click()
        return Path(download.value.path()).read_text("utf-8")

    def go(self, fragment, shows="#all tbody tr", **state):
        """Follow a fragment of the page, and wait until something of it is there."""
        self.page.evaluate("one => { location.hash = one }", fragment)
        self.page.wait_for_selector(shows, **state)
        return self.page
