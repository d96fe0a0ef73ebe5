import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from jaxmeter.reporting.render import html, panels
from jaxmeter.reporting.text import visible
from tests import samples
from tests.reporting.views import page_of

RUNS = {
    "ok": (samples.run(), samples.gpu_run()),
    "pass_number": (samples.sweep_run(),),
    "watched": (samples.watched_run(),),
    "published": (samples.published_run(),),
    "troubled": (samples.troubled_run(),),
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


def rendered(name: str) -> str:
    return html.render(page_of(*RUNS[name]))


def unpacked(page: str, name: str) -> list:
    """The data that the page keeps in its scripts of this name."""
    found = re.findall(f'<script type="text/plain" id="{name}">(.*?)</script>', page)
    return [json.loads(gzip.decompress(base64.b64decode(one))) for one in found]


def everything(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """The elements of the page, and of all that it unpacks."""
    pieces = [text for chunk in unpacked(page, r"chunk-\d+") for texts in chunk["kinds"].values() for text in texts]
    return [one for text in (page, *pieces) for one in Reader(text).elements]


def told(page: str) -> str:
    """The text of the page, and of all that it unpacks."""
    chunks = unpacked(page, r"chunk-\d+")
    return Reader(page + "".join(text for chunk in chunks for texts in chunk["kinds"].values() for text in texts)).text


@pytest.mark.parametrize("name", RUNS)
def test_equal_input_gives_equal_bytes(name):
    assert rendered(name) == rendered(name)


def test_the_policy_forbids_everything_but_the_page_s_own_style_and_script():
    page = rendered("ok")
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1] for tag in ("style", "script"))
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script, style)]

    elements = Reader(page).elements
    head = elements[elements.index(("head", {})) + 1 :]
    assert head[0] == ("meta", {"charset": "utf-8"})
    assert head[1] == (
        "meta",
        {
            "http-equiv": "Content-Security-Policy",
            "content": (
                f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
                "base-uri 'none'; form-action 'none'"
            ),
        },
    )


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

    assert [tags.count(tag) for tag in ("h1", "main", "header")] == [1, 1, 1]
    assert [tag for tag, _ in everything(rendered(name))].count("table") == [
        tag for tag, _ in everything(rendered(name))
    ].count("caption")
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
        planned = samples.planned_case("grows", params={name: n}, variants=(f"{name}:jit",))
        pairs.append((planned, samples.record(planned, {f"{name}:jit": {"timing": samples.timing(n * 1e-6)}})))

    page = html.render(page_of(samples.run(*pairs)))
    (chunk,) = unpacked(page, r"chunk-\d+")
    (scaling,) = chunk["kinds"]["more"][:1]

    assert "<polyline" in scaling
    assert "<script" not in scaling
    assert page.count("<script>") == 1
    assert scaling.count("&lt;/text&gt;&lt;script&gt;") >= 3


def test_a_figure_is_a_drawing_of_each_panel_with_words_for_who_cannot_see_it():
    (chunk,) = unpacked(rendered("pass_number"), r"chunk-\d+")
    scaling = chunk["kinds"]["more"][0]
    (figure,) = [attributes for _, attributes in Reader(scaling).elements if attributes.get("role") == "img"]

    assert figure["aria-label"].startswith(
        "cumulative_sum over n · ● cpu: trace + lower + compile, execution time, jaxpr equations"
    )
    drawings = re.findall(r"<svg[^>]*viewBox=\"0 0 180 150\".*?</svg>", scaling, re.DOTALL)
    assert [re.search(r"<text[^>]*>(.*?)</text>", one)[1] for one in drawings] == [
        "Trace + lower + compile",
        "Execution time",
        "Jaxpr equations",
    ]
    assert [one.count("<polyline") for one in drawings] == [2, 3, 2]
    assert all('font-size="11"' in one for one in drawings)


def test_a_suite_s_figure_has_a_name_for_each_bar_and_words_for_its_marks():
    page = rendered("ok")
    (figure,) = re.findall(r'<svg class="dumbbells".*?</figcaption>', page, re.DOTALL)

    assert 'role="img"' in figure
    assert "○ eager ● jit" in figure
    assert len(re.findall(r'<text x="6"', figure)) >= 1


def test_a_word_of_the_glossary_is_explained_where_it_first_stands_and_only_there():
    shown = html.define("2 variants; <b> 1 variant is contended")

    assert shown.startswith('2 <dfn title="implementation and mode;')
    assert shown.count("<dfn") == 2
    assert "&lt;b&gt; 1 variant is <dfn" in shown


def test_a_figure_is_drawn_as_often_for_many_cases_as_for_few(monkeypatch):
    drawn = []
    really = panels.draw
    monkeypatch.setattr(panels, "draw", lambda plot: drawn.append(plot) or really(plot))

    def count(cases: int) -> int:
        planned = [samples.planned_case(params={"n": 10**power}) for power in range(cases)]
        drawn.clear()
        html.render(page_of(samples.run(*((one, samples.fast_case(one)) for one in planned))))
        return len(drawn)

    assert count(3) == count(6) > 0
