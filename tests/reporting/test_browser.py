"""The page in headless Chromium. Without one these tests are skipped, or fail where one is required."""

import os
import shutil

import pytest

from reporting import html
from reporting.text import visible
from tests import samples
from tests.reporting.views import page_of

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
PAGES = {
    "ok": (samples.run(), samples.sweep_run(run_id="sweep"), samples.gpu_run()),
    "watched": (samples.watched_run(),),
    "published": (samples.published_run(),),
    "troubled": (samples.troubled_run(),),
    "hostile": (samples.hostile_run(),),
    "many": tuple(samples.run(run_id=f"run-{index}") for index in range(30)),
}

pytestmark = pytest.mark.browser


def _missing(reason):
    if os.environ.get(REQUIRE) in (None, "", "0"):
        pytest.skip(f"{reason}; {REQUIRE}=1 makes this a failure")
    pytest.fail(f"{reason}, and {REQUIRE} is set")


@pytest.fixture(scope="module")
def chromium():
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        _missing(f"no Chromium on PATH (looked for {', '.join(NAMES)})")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


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


@pytest.fixture(scope="module", params=PAGES)
def path(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("pages") / "page.html"
    file.write_bytes(html.render(page_of(*PAGES[request.param])).encode())
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_silent_and_asks_for_nothing_but_itself(chromium, path, scheme):
    visit = Visit(chromium, path, scheme=scheme)

    assert visit.noise == []
    assert visit.requests == [path.as_uri()]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_never_scrolls_sideways(chromium, path, width):
    page = Visit(chromium, path, width=width).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_style_sheet_is_the_one_that_the_policy_allows(chromium, path):
    page = Visit(chromium, path).page

    assert page.evaluate("getComputedStyle(document.querySelector('th.number')).textAlign") == "right"


def test_dark_pages_are_dark(chromium, path):
    colour = "getComputedStyle(document.body).backgroundColor"

    assert Visit(chromium, path, scheme="dark").page.evaluate(colour) == "rgb(15, 19, 24)"
    assert Visit(chromium, path).page.evaluate(colour) == "rgb(255, 255, 255)"


def test_hostile_text_is_read_as_it_is_and_starts_nothing(chromium, tmp_path):
    file = tmp_path / "page.html"
    file.write_bytes(html.render(page_of(*PAGES["hostile"])).encode())

    visit = Visit(chromium, file)

    text = visit.page.evaluate("document.body.textContent")
    assert all(visible(one) in text for one in samples.HOSTILE)
    assert visit.noise == []
    assert visit.page.evaluate("document.querySelectorAll('script, b, img[src=x]').length") == 0


def test_a_page_can_be_printed_with_its_folds_open(chromium, tmp_path):
    file = tmp_path / "page.html"
    file.write_bytes(html.render(page_of(*PAGES["troubled"])).encode())
    page = Visit(chromium, file).page

    page.emulate_media(media="print")

    assert page.evaluate("document.querySelector('nav').offsetHeight") == 0
    assert page.evaluate("document.querySelector('#problems pre').getBoundingClientRect().height") > 0
