"""What a reader can do with a page in a browser: read, select, save and copy figures, choose columns, follow links."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.reporting.browser import Visit, write_example

SVG = "{http://www.w3.org/2000/svg}"

FIGURE = "[data-card=jit] .wide svg"

KEEP_COPIED = """
Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } });
"""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("report"))[0]


@pytest.fixture
def page(chromium, report):
    """The overview; nothing that a test does with it may raise an error or break the page's policy."""
    visit = Visit(chromium, report, script=KEEP_COPIED)
    visit.page.set_default_timeout(5000)
    yield visit.page
    visit.page.context.close()
    assert visit.noise == []


def list_titles(page):
    return page.locator(f"{FIGURE} .m > title").all_text_contents()


def press(page, label):
    page.locator(FIGURE).focus()  # The menu shows while its card has the focus.
    page.locator("[data-card=jit] .menu").get_by_role("button", name=label).click()


def save(page, label):
    with page.expect_download(timeout=20_000) as download:
        press(page, label)
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_arrow_keys_and_the_mouse_read_the_marks_of_a_figure_until_escape(page):
    first, second, *_ = list_titles(page)
    page.locator(FIGURE).focus()
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Escape"):
        page.keyboard.press(key)
        told.append(page.locator("#read").text_content())
    page.locator(f"{FIGURE} .m").first.dispatch_event("mouseover")

    assert [*told, page.locator("#read").text_content()] == [first, second, first, "", first]


@pytest.mark.parametrize("by_key", [False, True])
def test_in_a_case_a_mark_selects_its_variant_in_all_figures_and_a_second_time_clears(page, report, by_key):
    page.goto(f"{report.as_uri()}#case=matmul/matmul[dtype=float32,n=2048,precision=default]")
    figure = page.locator("#case [data-card=speed] figure:visible svg")
    mark = figure.locator(".m[data-v]").first
    variant = mark.get_attribute("data-v")
    figure.focus()
    page.keyboard.press("ArrowRight")

    def choose():
        page.keyboard.press("Enter") if by_key else mark.dispatch_event("click")

    choose()
    selected = page.locator("#case .m.on").evaluate_all("marks => marks.map((mark) => mark.dataset.v)")
    variants = page.locator("#case .m[data-v]").evaluate_all("marks => marks.map((mark) => mark.dataset.v)")

    assert selected == [variant] * variants.count(variant)
    assert len(selected) > 1
    assert page.locator("body.pick").count() == 1

    choose()

    assert page.locator("body.pick, .m.on").count() == 0


@pytest.mark.parametrize("by", ["mark", "label", "key"])
@pytest.mark.parametrize("card", ["jit", "time"])
def test_on_the_overview_a_mark_and_its_label_open_the_case_and_dim_nothing(page, card, by):
    figure = page.locator(f"[data-card={card}] .wide svg")
    kind = "text[data-c]" if by == "label" else ".m[data-c]"
    target = figure.locator(kind).last  # No other mark covers it.
    fragment = target.get_attribute("data-c")

    if by == "key":
        figure.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
    else:
        target.click()

    page.wait_for_selector("#case:not([hidden]) h1")
    assert page.locator("#case h1").text_content().partition(": ")[0] == fragment.partition("/")[2]
    assert page.locator("body.pick, .m.on").count() == 0


def test_every_mark_of_the_overview_that_can_be_clicked_names_a_case_of_the_page(page):
    page.click("details.more summary")
    page.wait_for_selector("details.more .card svg")
    named = page.locator("#overview [data-c]").evaluate_all("all => [...new Set(all.map((one) => one.dataset.c))]")
    page.get_by_role("link", name="All results", exact=True).click()
    page.locator(".explored tbody th a").first.wait_for()
    page.evaluate("location.hash = '#all?rows=1000'")
    page.wait_for_function("document.querySelectorAll('.explored tbody tr').length > 100")
    known = page.locator(".explored tbody th a").evaluate_all("all => all.map((one) => decodeURIComponent(one.hash))")

    assert len(named) > 20
    assert {f"#{one}" for one in named} <= set(known)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_saved_svg_needs_no_page_and_says_what_it_is_and_where_it_was_measured(page, theme):
    heading = page.locator("#overview h1").text_content()
    page.emulate_media(color_scheme=theme)
    name, content = save(page, "SVG")

    image = ElementTree.fromstring(content)
    behind, *drawn = [one for one in image.iter() if one.tag not in (f"{SVG}title", f"{SVG}svg")]
    assert (name, behind.tag) == ("jit.svg", f"{SVG}rect")
    assert behind.get("fill") == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 26, 33)"}[theme]
    assert all(one.get("fill").startswith(("rgb", "none")) for one in drawn)
    texts = [one.text for one in image.iter(f"{SVG}text")]
    assert texts[0] == "Is jit worth it?"
    assert heading in texts
    assert any("hollow" in text for text in texts[-4:])


def test_a_saved_png_has_twice_the_pixels(page):
    figure = page.locator(FIGURE)
    least = 2 * float(figure.get_attribute("width")), 2 * float(figure.get_attribute("height"))

    name, content = save(page, "PNG")
    width, height = (int.from_bytes(content[start : start + 4], "big") for start in (16, 20))

    assert name == "jit.png"
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert width > least[0]
    assert height > least[1]
    assert width % 2 == height % 2 == 0


def test_keys_up_and_down_go_to_another_row_and_stay_in_the_last_one(page):
    rows = list(dict.fromkeys(title.partition(",")[0] for title in list_titles(page)))
    page.locator(FIGURE).focus()

    told = []
    for key in ("ArrowRight", *["ArrowDown"] * len(rows), "ArrowUp"):
        page.keyboard.press(key)
        told.append(page.locator("#read").text_content().partition(",")[0])

    assert len(rows) > 1
    assert told == [*rows, rows[-1], rows[-2]]


def test_a_case_shows_its_speed_by_another_quantity(page, report):
    page.goto(f"{report.as_uri()}#all")
    page.locator(".explored tbody th a").first.click()
    card = page.locator("#case [data-card=speed]")
    card.get_by_role("button", name="normalised time").click()

    assert card.locator("figure:visible").get_attribute("data-quantity") == "normalised time"
    assert card.get_by_role("button", name="normalised time").get_attribute("aria-pressed") == "true"
    card.get_by_role("button", name="time", exact=True).click()
    assert card.locator("figure:visible").get_attribute("data-quantity") is None


def test_a_card_is_copied_as_markdown_with_a_link_all_values_and_what_it_was_measured_on(page):
    press(page, "Copy Markdown")

    question, *_, values, context = page.evaluate("window.copied").strip().split("\n\n")

    assert "JAX" in context
    assert page.locator(".devices > span").first.inner_text().split()[1] in context
    assert question.startswith("**[")
    assert "](<report.html#" in question
    assert "file:" not in question
    assert [line.replace("\\", "") for line in values.split("\n")] == [f"- {title}" for title in list_titles(page)]


def test_chosen_columns_stay_in_the_link(page):
    page.get_by_role("link", name="All results", exact=True).click()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Where", exact=True).and_(page.get_by_role("checkbox")).uncheck()
    page.get_by_label("Run", exact=True).check()

    page.reload()
    page.locator(".explored th").first.wait_for()

    assert page.url.endswith("#all?cols=case,variant,time,speedup,first,memory,status,run")
    assert page.locator(".explored thead th").all_text_contents()[:3] == ["Case", "Variant", "Time"]


def test_links_to_a_case_are_readable_and_escaped_ones_open_it_too(page, report):
    page.goto(f"{report.as_uri()}#all")
    link = page.locator(".explored tbody th a").first
    fragment = link.get_attribute("href")

    assert fragment.startswith("#case=")
    assert "[" in fragment
    assert "%" not in fragment
    link.click()
    heading = page.locator("#case h1").text_content()
    page.goto(report.as_uri())
    page.goto(f"{report.as_uri()}#{page.evaluate('encodeURIComponent', fragment[1:])}")
    assert page.locator("#case h1").text_content() == heading
