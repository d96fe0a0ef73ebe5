import base64
import hashlib
import re
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote

import msgspec
import pytest

from jaxmeter.harness.record.wording import visible
from jaxmeter.reporting.render import html
from jaxmeter.reporting.render.html import unpack
from tests import samples
from tests.odd_run import odd_run
from tests.reporting.views import page_of

RUNS = {
    "ok": (samples.run(), samples.gpu_run(), samples.sweep_run(run_id="sweep")),
    "odd": (odd_run(),),
    "hostile": (samples.hostile_run(),),
    "nothing planned": (samples.RunRecord(manifest=samples.manifest(()), cases=()),),
}


class Reader(HTMLParser):
    """Collects a page's elements, its text, and every id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@cache
def rendered(name: str) -> str:
    return html.render(page_of(*RUNS[name]))


def unpacked(page: str, name: str) -> list:
    """The data that the page keeps in its scripts of this name."""
    found = re.findall(f'<script type="text/plain" id="{name}">(.*?)</script>', page)
    return [unpack(one) for one in found]


def list_pieces(page: str) -> list[str]:
    """The HTML of all that the page unpacks."""
    return [text for chunk in unpacked(page, r"chunk-\d+") for text in chunk.values()]


@cache
def everything(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """The elements of the page, and of all that it unpacks."""
    return [one for text in (page, *list_pieces(page)) for one in Reader(text).elements]


@cache
def told(page: str) -> str:
    """The text of the page, and of all that it unpacks."""
    return Reader(page + "".join(list_pieces(page))).text


@pytest.mark.parametrize("name", RUNS)
def test_equal_input_gives_equal_bytes(name):
    assert html.render(page_of(*RUNS[name])) == rendered(name)


def test_the_policy_forbids_everything_but_the_page_s_own_style_and_script():
    page = rendered("ok")
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1] for tag in ("style", "script"))
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script, style)]
    policy = (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )

    elements = Reader(page).elements
    head = elements[elements.index(("head", {})) + 1 :]
    assert head[0] == ("meta", {"charset": "utf-8"})
    assert head[1] == ("meta", {"http-equiv": "Content-Security-Policy", "content": policy})


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_loaded_from_anywhere_and_one_script_runs(name):
    page = rendered(name)
    assert [attributes for tag, attributes in Reader(page).elements if tag == "script"][-1] == {}
    assert page.count("<script>") == 1
    for tag, attributes in everything(page):
        assert tag not in ("link", "iframe", "object", "base", "form", "img")
        assert tag != "script" or attributes.get("type") in (None, "text/plain")
        assert "style" not in attributes
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
        for attribute in ("src", "srcset", "href"):
            value = attributes.get(attribute)
            assert value is None or value.startswith("#")
    assert "url(" not in page.split("</style>")[0]


@pytest.mark.parametrize("name", RUNS)
def test_every_id_is_unique_and_every_link_leads_somewhere(name):
    page = rendered(name)
    ids = [attributes["id"] for _, attributes in Reader(page).elements if "id" in attributes]

    assert len(ids) == len(set(ids))
    cases = {one["id"] for one in unpacked(page, "index")[0]["cases"]}
    links = {unquote(attributes["href"][1:]) for tag, attributes in everything(page) if tag == "a"}
    assert links <= {*ids, *cases}


@pytest.mark.parametrize("name", RUNS)
def test_a_page_has_one_heading_landmarks_and_tables_with_captions_and_scopes(name):
    elements = Reader(rendered(name)).elements
    tags = [tag for tag, _ in elements]
    every_tag = [tag for tag, _ in everything(rendered(name))]

    assert [tags.count(tag) for tag in ("h1", "main", "header")] == [1, 1, 1]
    assert every_tag.count("table") == every_tag.count("caption")
    assert all("scope" in attributes for tag, attributes in elements if tag == "th")
    assert all(attributes.get("aria-label") for _, attributes in elements if attributes.get("role") == "img")


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_text_is_shown_as_it_is(text):
    shown = told(rendered("hostile"))

    assert visible(text) in shown
    assert visible(text, multi_line=True) in shown


def test_hostile_names_are_text_in_a_figure_too():
    name = "</text><script>alert(1)</script>"
    pairs = []
    for n in (10, 100, 1000):
        times = dict.fromkeys((f"{name}:jit", "g:jit"), samples.timing(n * 1e-6))
        pairs.append(samples.pair(times, workload="grows", params={name: n}))

    page = html.render(page_of(samples.run(*pairs)))

    drawn = "".join(list_pieces(page))
    assert "<polyline" in drawn
    assert "<script" not in drawn
    assert page.count("<script>") == 1
    assert drawn.count("&lt;/text&gt;&lt;script&gt;") >= 3


@pytest.mark.parametrize("name", RUNS)
def test_each_figure_has_a_name_its_marks_say_what_they_show_and_the_style_sheet_alone_how_they_look(name):
    looks = {"fill", "stroke", "color", "opacity", "font-size", "font-weight", "text-anchor", "stroke-dasharray"}
    shapes = ("svg", "g", "path", "line", "rect", "circle", "text")
    figures = re.findall(
        r"<svg class=\"figure\".*?</svg>", "".join([rendered(name), *list_pieces(rendered(name))]), re.DOTALL
    )

    assert bool(figures) is (name != "nothing planned")
    assert not [one for one in everything(rendered(name)) if one[0] in shapes and looks & set(one[1])]
    for figure in figures:
        ((tag, attributes), *_) = Reader(figure).elements
        assert (tag, attributes["role"], attributes["tabindex"]) == ("svg", "img", "0")
        assert attributes["aria-label"]
        assert figure.count('<g class="m ') == len(re.findall(r'<g class="m [^>]*><title>[^<]', figure))


def test_a_number_with_an_interval_is_in_bold_and_hostile_words_around_it_are_text():
    shown = html.emphasise("<img src=x> 4.5\u202fms [4.2, 4.8] of 3 <b>")

    assert shown == "&lt;img src=x&gt; <b>4.5\u202fms</b> [4.2, 4.8] of 3 &lt;b&gt;"


def test_why_not_to_rely_on_an_answer_stands_behind_it():
    doubted = samples.timing(1e-4, baseline_s=1e-3, doubtful_ratios=True)
    page = html.render(page_of(samples.one_case({"f:eager": samples.timing(1e-3), "f:jit": doubted})))

    (said,) = re.findall(r'data-card="selu".*?<p class="said">(.*?)</p>', page, re.DOTALL)
    assert re.search(r'as fast as f:eager\. <span class="warn">.*rely.*</span>', said)


def test_a_figure_by_another_quantity_is_there_and_hidden():
    run = samples.run()
    counted = msgspec.structs.replace(run.manifest.cases[0], items=64, items_unit="tokens")
    page = html.render(page_of(samples.run((counted, run.cases[0]))))

    found = [attributes for tag, attributes in everything(page) if tag == "figure" and "data-quantity" in attributes]
    assert {(one["data-quantity"], "hidden" in one) for one in found} == {("throughput", True)}


def test_a_word_of_the_glossary_is_explained_where_it_first_stands_and_only_there():
    shown = html.define("2 variants; <b> 1 variant is contended")

    assert shown.startswith('2 <dfn title="implementation and mode;')
    assert shown.count("<dfn") == 2
    assert "&lt;b&gt; 1 variant is <dfn" in shown


def test_what_is_seen_first_has_as_many_figures_for_many_cases_as_for_few():
    def count(cases: int) -> int:
        planned = [samples.planned_case(params={"n": 10**power}) for power in range(cases)]
        page = html.render(page_of(samples.run(*((one, samples.fast_case(one)) for one in planned))))
        return [tag for tag, _ in Reader(page).elements].count("svg")

    assert count(3) == count(6) > 0
