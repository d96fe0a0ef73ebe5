"""The page in headless Chromium. Without one these tests are skipped, or fail where one is required."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from jaxmeter.harness.record.wording import visible
from jaxmeter.reporting.render import html
from tests import samples
from tests.reporting.browser import Visit
from tests.reporting.views import page_of

PAGES = {
    "ok": (samples.run(), samples.sweep_run(run_id="pass_number"), samples.gpu_run()),
    "troubled": (samples.troubled_run(),),
    "hostile": (samples.hostile_run(),),
    "many": tuple(samples.run(run_id=f"run-{index}") for index in range(30)),
}

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=PAGES)
def path(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("pages") / "page.html"
    file.write_bytes(html.render(page_of(*PAGES[request.param])).encode())
    return file


@pytest.mark.parametrize(("scheme", "colour"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 19, 24)")])
def test_a_page_is_silent_asks_for_nothing_but_itself_and_has_the_colour_of_its_scheme(chromium, path, scheme, colour):
    visit = Visit(chromium, path, scheme=scheme)

    assert visit.noise == []
    assert visit.requests == [path.as_uri()]
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == colour


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_a_page_never_scrolls_sideways(chromium, path, width):
    page = Visit(chromium, path, width=width).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_style_sheet_is_the_one_that_the_policy_allows(chromium, path):
    page = Visit(chromium, path).page

    assert page.evaluate("getComputedStyle(document.querySelector('.results td')).textAlign") == "right"


def test_hostile_text_is_read_as_it_is_and_starts_nothing(chromium, tmp_path):
    file = tmp_path / "page.html"
    file.write_bytes(html.render(page_of(*PAGES["hostile"])).encode())

    visit = Visit(chromium, file)
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    visit.page.wait_for_timeout(500)
    text = visit.page.evaluate("document.body.textContent")
    for case in visit.page.evaluate("[...document.querySelectorAll('.results tbody')].map(one => one.id)"):
        visit.page.evaluate("id => { location.hash = encodeURIComponent(id) }", case)
        visit.page.wait_for_selector("#case:not([hidden]) h1")
        text += visit.page.locator("#case").text_content()

    assert all(visible(one) in text for one in samples.HOSTILE)
    assert visit.noise == []
    assert visit.page.evaluate("document.querySelectorAll('img, script[src], b :not(b)').length") == 0
    bold = visit.page.evaluate("[...document.querySelectorAll('b')].map(one => one.textContent)")
    assert all(re.match(r"[\d.,\u202f]+|not run$", one) for one in bold)  # numbers of our own, and nothing recorded


@pytest.mark.page
@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [
        *((name, scheme, 1280) for name in ("ok", "hostile") for scheme in ("light", "dark")),
        ("ok", "dark", 390),
        ("ok", "light", 1920),
    ],
)
def test_axe_finds_nobody_left_out(chromium, name, scheme, width, tmp_path):
    file = tmp_path / "page.html"
    file.write_bytes(html.render(page_of(*PAGES[name])).encode())
    page = Visit(chromium, file, scheme=scheme, width=width).page
    case = page.evaluate("document.querySelector('.results tbody').id")

    found = {}
    for view in ("overview", "all", page.evaluate("document.querySelector('.suite').id"), case):
        page.evaluate("one => { location.hash = encodeURIComponent(one) }", view)
        page.wait_for_timeout(200)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.wait_for_timeout(200)
        violations = Axe().run(page).response["violations"]
        found |= {(view, one["id"]): one["nodes"][0]["html"] for one in violations}

    assert found == {}
