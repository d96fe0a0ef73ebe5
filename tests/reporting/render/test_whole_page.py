"""What takes a tool of its own, or many results: `nox -s page`."""

import json
import subprocess

import msgspec
import pytest

from jaxmeter.reporting.load import load
from jaxmeter.reporting.render import html
from jaxmeter.reporting.view import build
from tests.reporting.browser import EXAMPLES, ROOT, Visit
from tests.reporting.render.test_html import RUNS, unpacked
from tests.reporting.views import page_of

TOOL = ROOT / "tests" / "reporting" / "html_validate"
RESULTS = 10_000
THROTTLE = 4

pytestmark = pytest.mark.page


def lay_out(page):
    """The page, and a document for each piece that it unpacks."""
    yield "page.html", page
    for chunk in unpacked(page, r"chunk-\d+"):
        for name, text in chunk.items():
            head = '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Piece</title>\n</head>\n'
            title = "" if "<h1" in text else "<h1>Piece</h1>\n<h2>Piece</h2>\n"
            yield f"{abs(hash(name))}.html", f"{head}<body>\n{title}{text}</body>\n</html>\n"


@pytest.mark.parametrize("name", [*RUNS, "example"])
def test_html_validate_finds_nothing(name, tmp_path):
    page = html.render(build(load(EXAMPLES))) if name == "example" else html.render(page_of(*RUNS[name]))
    for file, text in lay_out(page):
        (tmp_path / file).write_text(text, "utf-8")

    program = [TOOL / "node_modules/.bin/html-validate", "--config", TOOL / ".htmlvalidate.json"]
    told = tmp_path / "told.json"
    found = subprocess.run([*program, "--formatter", f"json={told}", tmp_path], capture_output=True, check=False)

    assert told.is_file(), found.stderr
    files = json.loads(told.read_text("utf-8"))
    told = [(one["ruleId"], one["message"], one["line"]) for file in files for one in file["messages"]]
    assert told == []


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The page of one run with ten thousand results: the cases of an example's run, again and again."""
    runs = load(EXAMPLES).runs
    run = max((one.record for one in runs), key=lambda one: len(one.cases))
    results = sum(len(case.variants) for case in run.manifest.cases)
    planned, cases = [], []
    for copy in range(-(-RESULTS // results)):
        for case in run.manifest.cases:
            workload = f"{case.workload}_{copy}"
            changed = {"id": f"{case.id}-{copy}", "name": f"{case.name}#{copy}", "workload": workload}
            planned.append(msgspec.structs.replace(case, **changed))
        cases += [msgspec.structs.replace(one, id=f"{one.id}-{copy}", name=f"{one.name}#{copy}") for one in run.cases]
    manifest = msgspec.structs.replace(run.manifest, cases=tuple(planned))
    file = tmp_path_factory.mktemp("large") / "page.html"
    file.write_text(html.render(page_of(msgspec.structs.replace(run, manifest=manifest, cases=tuple(cases)))), "utf-8")
    return file


def test_ten_thousand_results_have_a_small_index_in_a_page_that_can_be_mailed(large):
    text = large.read_text("utf-8")

    index = text.partition('id="index">')[2].partition("</script>")[0]
    assert len(index) <= 120_000
    assert len(text.encode()) <= 2_000_000


def test_ten_thousand_results_are_searched_and_a_case_is_opened(chromium, large):
    visit = Visit(chromium, large)
    page = visit.page
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})

    page.keyboard.press("/")
    page.keyboard.type("matmul 2048 float32 #17")
    page.keyboard.press("Enter")
    page.wait_for_selector("#case:not([hidden]) h1")

    assert page.locator("#case h1").inner_text().partition(": ")[0].endswith("#17")
    page.evaluate("location.hash = '#all'")
    page.wait_for_selector("#all tbody tr")
    assert page.locator("#all tbody tr").count() == 25
    assert f"of {RESULTS // 1000}" in page.locator("#all [role=status]").inner_text()
    assert visit.noise == []
