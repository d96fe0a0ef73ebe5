import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from reporting import html
from reporting.text import visible
from tests import samples
from tests.reporting.views import page_of

RUNS = {
    "ok": (samples.run(), samples.gpu_run()),
    "sweep": (samples.sweep_run(),),
    "watched": (samples.watched_run(),),
    "published": (samples.published_run(),),
    "troubled": (samples.troubled_run(),),
    "hostile": (samples.hostile_run(),),
    "nothing planned": (samples.Run(manifest=samples.manifest(()), cases=()),),
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


@pytest.mark.parametrize("name", RUNS)
def test_equal_input_gives_equal_bytes(name):
    assert rendered(name) == rendered(name)


def test_the_policy_forbids_everything_but_the_page_s_own_style():
    page = rendered("ok")
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    elements = Reader(page).elements
    head = elements[elements.index(("head", {})) + 1 :]
    assert head[0] == ("meta", {"charset": "utf-8"})
    assert head[1] == (
        "meta",
        {
            "http-equiv": "Content-Security-Policy",
            "content": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        },
    )


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_loaded_from_anywhere_and_nothing_runs(name):
    for tag, attributes in Reader(rendered(name)).elements:
        assert tag not in ("script", "link", "iframe", "object", "base", "form", "img")
        assert "style" not in attributes
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
        for attribute in ("src", "srcset", "href"):
            value = attributes.get(attribute)
            assert value is None or value.startswith("#")
    assert "url(" not in html.policy("") + rendered(name).split("</style>")[0]


@pytest.mark.parametrize("name", RUNS)
def test_every_id_is_unique_and_every_link_leads_somewhere(name):
    elements = Reader(rendered(name)).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]

    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for tag, attributes in elements if tag == "a"} <= set(ids)


@pytest.mark.parametrize("name", RUNS)
def test_a_page_has_one_heading_landmarks_and_tables_with_captions_and_scopes(name):
    elements = Reader(rendered(name)).elements
    tags = [tag for tag, _ in elements]

    assert [tags.count(tag) for tag in ("h1", "main", "header")] == [1, 1, 1]
    assert tags.count("table") == tags.count("caption")
    assert all("scope" in attributes for tag, attributes in elements if tag == "th")
    assert all(attributes.get("aria-label") for _, attributes in elements if attributes.get("role") == "img")


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_text_is_shown_as_it_is(text):
    shown = Reader(rendered("hostile")).text

    assert visible(text) in shown
    assert visible(text, multi_line=True) in shown


def test_hostile_names_are_text_in_a_figure_too():
    name = "</text><script>alert(1)</script>"
    pairs = []
    for n in (10, 100, 1000):
        planned = samples.planned_case("grows", params={name: n}, variants=(f"{name}:jit",))
        pairs.append((planned, samples.record(planned, {f"{name}:jit": {"timing": samples.timing(n * 1e-6)}})))

    page = html.render(page_of(samples.run(*pairs)))

    assert "<polyline" in page
    assert "<script" not in page
    assert page.count("&lt;/text&gt;&lt;script&gt;") >= 3


def test_a_figure_is_a_drawing_of_each_panel_with_words_for_who_cannot_see_it():
    page = rendered("sweep")
    (figure,) = [attributes for _, attributes in Reader(page).elements if attributes.get("role") == "img"]

    assert figure["aria-label"].startswith(
        "cumulative_sum over n · ● cpu: trace + lower + compile, execution time, jaxpr equations"
    )
    drawings = re.findall(r"<svg[^>]*viewBox=\"0 0 180 150\".*?</svg>", page, re.DOTALL)
    assert [re.search(r"<text[^>]*>(.*?)</text>", one)[1] for one in drawings] == [
        "Trace + lower + compile",
        "Execution time",
        "Jaxpr equations",
    ]
    assert [one.count("<polyline") for one in drawings] == [2, 3, 2]
    assert all('font-size="11"' in one for one in drawings)
