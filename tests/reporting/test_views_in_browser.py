"""The four views of a page in headless Chromium: what a reader does, and what they then see."""

import csv
import io
import json
import re
from urllib.parse import unquote

import pytest

from jaxmeter.reporting.frame import load_frame
from jaxmeter.reporting.render import html
from tests import samples
from tests.reporting.browser import Visit, write_example
from tests.reporting.compare.changed import AFTER, BEFORE, plain
from tests.reporting.views import page_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def example_page(example):
    return example[0]


@pytest.fixture
def made(tmp_path):
    def make(*runs):
        file = tmp_path / "page.html"
        file.write_bytes(html.render(page_of(*runs)).encode())
        return file

    return make


def shown(page):
    return page.evaluate("[...document.querySelectorAll('.view')].filter(one => !one.hidden).map(one => one.id)")


def bottom(page, selector):
    return page.evaluate(f"document.querySelector({selector!r}).getBoundingClientRect().bottom")


def test_what_changed_how_far_to_trust_it_and_the_first_answers_are_on_the_first_screen(chromium, example_page):
    wide, phone = Visit(chromium, example_page).page, Visit(chromium, example_page, width=390).page

    for card in ("changed", "trust", "jit", "time"):
        assert bottom(wide, f"[data-card={card}]") <= 800
    assert wide.locator(".cards .card").first.bounding_box()["y"] <= 600
    assert bottom(phone, "h1") <= 300


def test_every_answer_has_a_number_or_a_reason_a_figure_and_a_link_that_opens_its_case(chromium, example_page):
    page = Visit(chromium, example_page).page
    cards = page.locator("#overview .cards .card")

    page.click("details.more summary")
    page.wait_for_selector("details.more .card")
    assert cards.count() > 20
    for number in range(cards.count()):
        card = cards.nth(number)
        text = card.locator(".said").first.text_content()
        assert "No answer: " in text or (re.search(r"\d", text) and card.locator("figure svg").count())
    for card in page.locator("#overview .card:has(h2 a, h3 a)").all()[:8]:
        fragment = card.locator("h2 a, h3 a").get_attribute("href")
        card.locator("h2 a, h3 a").evaluate("one => one.click()")
        page.wait_for_selector("#case:not([hidden]) h1")
        assert page.locator("#case h1").inner_text().startswith(unquote(fragment).partition("/")[2])
        page.evaluate("location.hash = ''")
        page.wait_for_selector("#overview:not([hidden])")


def test_a_case_is_found_by_three_words_and_kept_by_a_reload(chromium, example_page):
    visit = Visit(chromium, example_page)
    page = visit.page
    page.keyboard.press("/")
    page.keyboard.type("matmul 2048 float32")
    page.keyboard.press("Enter")
    for _ in range(2):
        page.wait_for_selector("#case:not([hidden]) h1")
        assert page.locator("#case h1").inner_text().startswith("matmul[dtype=float32,n=2048")
        assert page.locator("#case .card h2").all_inner_texts()[:1] == ["How fast?"]
        assert shown(page) == ["case"]
        page.reload()
    assert visit.noise == []


def test_a_suite_opens_alone_with_its_figures_its_table_and_how_it_grows_and_a_case_marks_its_size(chromium, made):
    visit = Visit(chromium, made(samples.run(), samples.sweep_run(run_id="sweep")))
    page = visit.go("suite=cumulative_sum", "details.suite:visible .packed svg")
    assert shown(page) == ["suites"]
    suite = page.locator("details.suite:visible")
    assert suite.count() == 1
    assert suite.locator("[data-card=speed] svg").is_visible()
    assert suite.locator("[data-card^=compile_total_s] polyline").count() == 2
    assert suite.locator("table.results").is_visible()
    assert suite.locator(".section summary").first.inner_text().startswith("How it grows")
    visit.go("case=cumulative_sum/cumulative_sum[n=64]", "#case [data-card=growth-n] svg")
    assert page.locator("#case [data-card=growth-n] svg .here").count() == 1


def test_searching_says_how_many_match_and_how_many_are_hidden(chromium, example_page):
    page = Visit(chromium, example_page).page

    page.locator("#search").fill("cumulative_sum scan")
    page.wait_for_selector("#all tbody tr")

    rows = page.locator("#all tbody tr")
    count = page.locator("#all [role=status]").inner_text()
    assert count.startswith(f"{rows.count()} of {rows.count()} matches shown; ")
    assert all("scan" in text for text in rows.all_inner_texts())
    page.locator("#search").fill("no such thing")
    page.wait_for_selector("#all tbody:empty", state="attached")
    assert page.locator("#all [role=status]").inner_text().startswith("No result matches")
    page.get_by_role("button", name="Clear").click()
    page.wait_for_selector("#all tbody tr")
    assert page.locator("#search").input_value() == ""


def test_sorting_by_time_orders_all_matches_and_puts_what_has_none_last(chromium, example_page):
    visit = Visit(chromium, example_page)
    page = visit.go("all")
    for order in ("ascending", "descending"):
        page.locator("#all thead").get_by_role("button", name="Time").click()
        page.wait_for_selector(f"#all th[aria-sort={order}]")
        assert page.evaluate("document.activeElement.textContent").startswith("Time")
        rows = list(csv.DictReader(io.StringIO(visit.save("CSV"))))
        times = [float(row["execution_s"]) for row in rows if row["execution_s"]]
        assert times == sorted(times, reverse=order == "descending")
        assert all(not row["execution_s"] for row in rows[len(times) :])


def test_csv_and_json_hold_the_matches_and_the_record_s_values(chromium, example):
    path, run = example
    metrics = ("execution_s", "first_result_s")
    visit = Visit(chromium, path)
    page = visit.go("all?suite=selu")

    rows = list(csv.DictReader(io.StringIO(visit.save("CSV"))))
    assert len(rows) == page.locator("#all tbody tr").count()
    assert [row["variant"] for row in rows] == [one["variant"] for one in json.loads(visit.save("JSON"))]
    expected = load_frame([run]).query("suite == 'selu' and metric in @metrics")
    recorded = {(one.case, one.variant, one.metric): one.value for one in expected.itertuples()}
    read = {(row["case"], row["variant"], name): float(row[name]) for row in rows for name in metrics if row[name]}
    assert read == pytest.approx({key: value for key, value in recorded.items() if value == value}, rel=1e-5)


def test_no_text_in_csv_is_a_formula(chromium, made):
    run = samples.one_case({"f:jit": samples.timing(1e-3)}, {"workload": "=1+1"})
    visit = Visit(chromium, made(run))
    visit.go("all")

    (row,) = csv.DictReader(io.StringIO(visit.save("CSV")))
    assert row["case"] == f"'{run.manifest.cases[0].name}"
    assert float(row["execution_s"]) == pytest.approx(1e-3, rel=1e-2)


def test_a_facet_filters_counts_and_stays_in_the_fragment(chromium, example_page):
    page = Visit(chromium, example_page).go("all")

    suite = page.get_by_role("combobox", name="Suite", exact=True)
    suite.select_option("matmul")
    page.wait_for_url("**suite=matmul*")
    page.reload()
    page.wait_for_selector("#all tbody tr")

    assert suite.input_value() == "matmul"
    count = page.locator("#all tbody tr").count()
    assert f"matmul ({count})" in suite.inner_text()


@pytest.mark.parametrize(
    "fragment",
    [
        "case=selu/none",
        "nowhere",
        "%E0%A4%A",
        "<img src=x onerror=alert(1)>",
        "index",
        "chunk-0",
        "case",
        "search",
        "lost",
    ],
)
def test_a_fragment_that_names_nothing_or_a_part_of_the_page_itself_says_so_on_the_overview(chromium, made, fragment):
    visit = Visit(chromium, made(samples.run()))

    page = visit.go(fragment, "#lost:not(:empty)")

    assert f"{fragment.removeprefix('case=')}. This is the overview." in page.locator("#lost").inner_text()
    assert "overview" in shown(page)
    assert visit.noise == []


def test_without_a_script_every_answer_suite_table_and_figure_is_there(chromium, example_page):
    page = Visit(chromium, example_page, javascript=False).page

    suites = page.locator("details.suite").count()
    assert (
        page.locator("details.suite > .answer").count() == page.locator("details.suite table.results").count() == suites
    )
    assert page.locator("details.suite table.results tbody tr").count() > 100
    assert page.locator("#overview .card svg:visible").count() >= 10
    assert page.locator("#without-script").is_visible()
    assert "jaxmeter export" in page.locator("#without-script").inner_text()
    assert page.locator(".scripted:visible").count() == 0
    assert page.locator("#lost").inner_text() == ""


def test_the_example_is_small_and_few_screens_high(chromium, example_page):
    page = Visit(chromium, example_page).page

    assert example_page.stat().st_size <= 600_000  # 1.6 kB a variant, and 120 kB
    assert page.evaluate("document.querySelectorAll('*').length") <= 5_500
    assert page.evaluate("document.documentElement.scrollHeight") <= 6 * 800


def test_the_head_of_a_long_table_stays_visible(chromium, made):
    cases = [samples.planned_case(params={"size": n}) for n in range(60)]
    page = Visit(chromium, made(samples.run(*((one, samples.fast_case(one)) for one in cases)))).go(
        "suite=selu", "details.suite[open]"
    )

    page.evaluate("scrollTo(0, document.querySelector('table.results').getBoundingClientRect().top + 2000)")

    top = page.evaluate("document.querySelector('table.results thead th').getBoundingClientRect().top")
    assert 0 <= top < 100


@pytest.mark.parametrize("fragment", ["", "#all", "#suite=selu", "#case=selu/selu%5Bdtype=float32,n=10000%5D"])
def test_on_a_phone_no_row_is_high_nothing_scrolls_sideways_and_no_text_is_small(chromium, made, fragment):
    page = Visit(chromium, made(samples.run(), samples.sweep_run(run_id="pass_number")), width=390).page
    page.evaluate("one => { location.hash = one }", fragment)
    page.wait_for_timeout(300)

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    rows = "[...document.querySelectorAll('tbody tr')].filter(one => one.offsetParent)"
    assert page.evaluate(f"Math.max(0, ...{rows}.map(one => one.offsetHeight))") <= 80
    texts = "[...document.querySelectorAll('svg text')].filter(one => one.getBoundingClientRect().width)"
    scale = "one => one.ownerSVGElement.getBoundingClientRect().width / one.ownerSVGElement.viewBox.baseVal.width"
    assert page.evaluate(f"Math.min(11, ...{texts}.map(one => 11 * ({scale})(one)))") >= 11 * 0.95


def test_of_two_runs_both_times_and_the_suspicion_stand_on_the_first_screen(chromium, made):
    page = Visit(chromium, made(plain(BEFORE), plain(AFTER, 1.5e-4, fingerprint="bb", source="1"))).page

    card, changed = page.locator("[data-card=changed]"), page.locator("#overview .items").first
    assert "1 suspected" in card.inner_text()
    assert card.bounding_box()["y"] <= changed.bounding_box()["y"] <= 800
    assert "selu:jit: time 100 µs → 150 µs, +50 %" in changed.inner_text().replace("\u202f", " ")


@pytest.mark.parametrize("delay_ms", [0, 4])
def test_of_two_quick_navigations_the_last_counts(chromium, made, delay_ms):
    path = made(samples.run(), samples.sweep_run(run_id="pass_number"))
    cases = ["case=selu/selu[dtype=float32,n=10000]", "case=cumulative_sum/cumulative_sum[n=64]"]
    for first, second in ((cases[0], "overview"), cases, cases[::-1], ("all", cases[0]), (cases[1], "suite=selu")):
        page = Visit(chromium, path).page
        page.evaluate(
            """async ([first, second, delay]) => {
              location.hash = encodeURIComponent(first);
              await new Promise((done) => setTimeout(done, delay));
              location.hash = encodeURIComponent(second);
            }""",
            [first, second, delay_ms],
        )
        page.wait_for_timeout(400)

        views = {"overview": ["overview", "suites", "rest"], "suite=selu": ["suites"]}
        assert shown(page) == views.get(second, ["case"])
        if second.startswith("case="):
            assert page.locator("#case h1").inner_text().partition(": ")[0] == second.partition("/")[2]
            assert page.locator("#case .actions button").count() == 2


def test_a_view_has_its_title_and_a_link_to_a_section_unfolds_it(chromium, example_page):
    page = Visit(chromium, example_page).page
    first = page.title()

    page.evaluate("location.hash = '#suite=matmul'")
    page.wait_for_selector("#suites h1:not([hidden])")
    assert page.title() == "matmul – jaxmeter"
    page.evaluate("location.hash = '#environment'")
    page.wait_for_selector("#environment > details[open] .packed > *")
    assert page.title() == first
    assert page.locator("nav [aria-current]").all_inner_texts() == ["Environment"]


@pytest.mark.parametrize("width", [1280, 390])
def test_each_link_of_the_bar_lands_on_its_heading_and_closes_the_fold_of_the_one_before(chromium, example_page, width):
    page = Visit(chromium, example_page, width=width).page
    bar = page.locator("nav")
    for section in ("published", "problems", "method", "published"):
        bar.locator(f"a[href='#{section}']").click()
        page.wait_for_selector(f"#{section} > details[open] .packed > *", state="attached")
        page.wait_for_timeout(300)
        assert abs(page.locator(f"#{section}").bounding_box()["y"] - bar.bounding_box()["height"]) <= 20
        opened = "[...document.querySelectorAll('#rest > section')].filter(one => one.querySelector('details[open]'))"
        assert page.evaluate(f"{opened}.map(one => one.id)") == [section]


def test_a_fold_that_the_reader_opened_stays_open(chromium, example_page):
    page = Visit(chromium, example_page).page
    page.click("#method > details > summary")

    page.locator("nav a[href='#environment']").click()
    page.wait_for_selector("#environment > details[open] .packed > *")
    page.locator("nav a[href='#overview']").click()
    page.wait_for_selector("#environment > details:not([open])")

    assert page.locator("#method > details[open]").count() == 1


def test_in_print_every_suite_s_table_is_there_and_no_wider_than_its_column_and_the_pages_are_few(
    chromium, example_page
):
    page = Visit(chromium, example_page).page
    pdf = page.pdf(format="A4", landscape=True)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1047, "height": 720})

    suites = page.evaluate(
        "[...document.querySelectorAll('.suite')].map(one => [one.querySelector('table').offsetWidth, one.offsetWidth, "
        "one.querySelector('table.results').offsetHeight])"
    )

    assert all(table <= suite + 1 and height > 0 for table, suite, height in suites)
    assert 1 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 13


def test_no_cell_of_all_results_runs_into_the_next(chromium, example_page):
    page = Visit(chromium, example_page).go("all?rows=300")

    cells = "[...document.querySelectorAll('#all tbody th, #all tbody td')]"
    assert page.evaluate(f"{cells}.filter(one => one.scrollWidth > one.clientWidth + 1).length") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_enter_opens_the_first_of_the_rows_that_are_shown_and_nothing_without_words(chromium, example_page):
    page = Visit(chromium, example_page).go("all?q=cnn&variant=cnn_step:jit")
    name = page.locator("#all tbody a").first.inner_text()

    page.locator("#search").press("Enter")
    page.wait_for_selector("#case:not([hidden]) h1")

    assert page.locator("#case h1").inner_text().partition(": ")[0] == name
    page.evaluate("location.hash = '#overview'")
    page.wait_for_selector("#overview:not([hidden])")
    assert page.locator("#search").input_value() == ""
    page.locator("#search").press("Enter")
    page.wait_for_timeout(200)
    assert "overview" in shown(page)


def test_going_back_from_a_case_keeps_the_search(chromium, made):
    page = Visit(chromium, made(samples.run(), samples.sweep_run(run_id="pass_number"))).page

    page.locator("#search").fill("scan")
    page.wait_for_selector("#all tbody tr")
    page.locator("#all tbody a").first.click()
    page.wait_for_selector("#case:not([hidden]) h1")
    page.go_back()
    page.wait_for_selector("#all:not([hidden]) tbody tr")

    assert page.locator("#search").input_value() == "scan"
    assert all("scan" in text for text in page.locator("#all tbody tr").all_inner_texts())
