"""Ten tasks of a reader on real pages: how many clicks, searches and keys it takes until the answer is visible."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.reporting.browser import ROOT, Visit

pytestmark = pytest.mark.browser

CPU, GPU = ROOT / "examples" / "cpu.html", ROOT / "examples" / "gpu.html"
RELEASES = ROOT / "examples" / "releases_since_0.4.31" / "page.html"
MOST_ACTIONS = 3
TIME = re.compile(r"\d\s(ns|µs|ms|s)")


class Reader:
    """Counts what a reader does."""

    def __init__(self, page: Page) -> None:
        self.page, self.actions = page, 0

    def click(self, selector: str, text: str | re.Pattern[str] = "") -> None:
        self.actions += 1
        self.page.locator(selector).filter(has_text=text, visible=True).first.click()

    def find(self, words: str) -> None:
        """Type words into the search, and open the first match: two actions."""
        self.actions += 2
        self.page.keyboard.press("/")
        self.page.keyboard.type(words)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("#case:not([hidden]) h1")

    def sees(self, selector: str, text: str | re.Pattern[str]) -> None:
        expect(self.page.locator(selector).filter(visible=True).first).to_contain_text(text)
        assert self.actions <= MOST_ACTIONS


@pytest.fixture
def read(chromium, request):
    def open_page(path) -> Reader:
        visit = Visit(chromium, path)
        request.addfinalizer(visit.page.context.close)
        return Reader(visit.page)

    return open_page


def test_is_jit_worth_it_for_a_step_and_by_how_much(read):
    reader = read(CPU)

    reader.find("mlp_step 784-512-10 jit")

    reader.sees('#case [data-card="speed"]', re.compile(r"step:jit is [\d.]+× \["))


def test_which_case_got_slower(read):
    reader = read(RELEASES)

    reader.sees('[data-card="changed"]', re.compile(r"\d+ slower"))
    reader.sees('[data-card="changed"] figure', re.compile(r"scalar.leaves"))


def test_the_rate_of_a_large_product_on_a_gpu(read):
    reader = read(GPU)

    reader.find("matmul 8192 bfloat16")
    reader.click("#case summary", re.compile("^Speed"))

    reader.sees("#case details[open] table", re.compile(r"\d\sTFLOP/s"))


def test_how_much_memory_a_training_step_needs(read):
    reader = read(CPU)

    reader.find("cnn_step")

    reader.sees('#case [data-card="memory"]', re.compile(r"plans [\d.]+\s[KMG]iB"))


def test_why_a_case_is_slow(read):
    reader = read(CPU)

    reader.find("transformer_step")

    reader.sees('#case [data-card="time"]', re.compile(r"\d\s% (device|dispatch|host|idle)"))
    reader.sees('#case [data-card="first"]', TIME)


def test_its_profiler_trace(read):
    reader = read(CPU)

    reader.find("transformer_step")
    reader.click("#case summary", "Traces and programs")

    reader.sees("#case .files", "jaxmeter trace --open ")


def test_how_far_to_trust_the_numbers(read):
    reader = read(CPU)

    reader.sees('[data-card="trust"]', re.compile(r"Smallest detectable difference, median\s*\d"))
    reader.sees('[data-card="trust"]', re.compile(r"Contended times\s*\d+ of \d+"))


def test_versions_flags_and_machine(read):
    reader = read(CPU)

    reader.click("nav a", "Environment")

    reader.sees("#environment details[open]", re.compile(r"jaxlib[\s\S]*0\.12"))


def test_a_link_to_exactly_this_result(read):
    reader = read(CPU)

    reader.find("mlp_step 784-512-10")
    link = reader.page.evaluate("location.href")
    other = read(CPU)
    other.page.goto(link)

    other.sees("#case h1", "mlp_step[network=784-512-10]")
    assert reader.actions <= MOST_ACTIONS


def test_a_table_for_pandas(read):
    reader = read(CPU)

    reader.click("nav a", "All results")
    with reader.page.expect_download() as download:
        reader.click("#all button", "CSV")

    assert download.value.suggested_filename == "results.csv"
    assert reader.actions <= MOST_ACTIONS
