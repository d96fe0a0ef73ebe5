"""Tasks of a reader on real pages: how many clicks, searches and keys it takes until the answer is visible."""

import re

import pytest
from playwright.sync_api import expect

from tests.reporting.browser import ROOT, Visit

pytestmark = pytest.mark.browser
CPU, GPU = ROOT / "examples" / "cpu.html", ROOT / "examples" / "gpu.html"
RELEASES = ROOT / "examples" / "releases_since_0.4.31" / "page.html"

STEP = "transformer_step"
TASKS = {
    "is jit worth it for a step": (
        CPU,
        "mlp_step 784-512-10 jit",
        (),
        '#case [data-card="speed"]',
        r"jit is [\d.]+× \[",
    ),
    "which case got slower": (RELEASES, "", (), '[data-card="changed"]', r"scalar.leaves[\s\S]*\d+ slower"),
    "the rate of a large product on a GPU": (
        *(GPU, "matmul 8192 bfloat16", ("#case summary", "^Speed")),
        *("#case details[open] table", r"\d\sTFLOP/s"),
    ),
    "the memory of a training step": (CPU, "cnn_step", (), '#case [data-card="memory"]', r"plans [\d.]+\s[KMG]iB"),
    "why a case is slow": (CPU, STEP, (), '#case [data-card="time"]', r"\d\s% (device|dispatch|host|idle)"),
    "what its first call takes": (CPU, STEP, (), '#case [data-card="first"]', r"\d\s(ns|µs|ms|s)"),
    "its trace": (CPU, STEP, ("#case summary", "Traces and programs"), "#case .files", "jaxmeter trace --open "),
    "how far to trust the numbers": (CPU, "", (), '[data-card="trust"]', r"median\s*\d[\s\S]*times\s*\d+ of \d+"),
    "versions": (CPU, "", ("nav a", "Environment"), "#environment details[open]", r"jaxlib[\s\S]*0\.12"),
}
"""The page, the words to search for, what to click (a selector and its text), and where the answer is."""


@pytest.mark.parametrize(("file", "words", "click", "place", "answer"), TASKS.values(), ids=TASKS)
def test_a_reader_finds_an_answer_by_a_few_actions(chromium, request, file, words, click, place, answer):
    page = Visit(chromium, file).page
    request.addfinalizer(page.context.close)
    if words:
        page.keyboard.press("/")
        page.keyboard.type(words)
        page.keyboard.press("Enter")
        page.wait_for_selector("#case:not([hidden]) h1")
    if click:
        page.locator(click[0]).filter(has_text=re.compile(click[1]), visible=True).first.click()

    expect(page.locator(place).filter(visible=True).first).to_contain_text(re.compile(answer))
