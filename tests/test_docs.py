"""The documentation: what its pages link to is there, and its reference pages describe the code as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.scripts import DOCS, import_script

CHECKOUT = Path(__file__).parents[1]
OF_DOCS = sorted(page for page in DOCS.rglob("*.md") if DOCS / "_build" not in page.parents)
CHECKED = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *OF_DOCS]
LINKING = [
    *CHECKED,
    CHECKOUT / "CHANGELOG.md",
    CHECKOUT / "benchmarks" / "README.md",
    CHECKOUT / "examples" / "README.md",
    CHECKOUT / "jaxmeter" / "suites" / "README.md",
]
INCLUDING = re.compile(r"\{(?:literalinclude|include)\} (\S+)")
"""How a fence of MyST names the file that it shows."""


SHOWN = "text"
"""The language of blocks that show what a command printed."""


outputs = import_script("outputs")


def name_page(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


@cache
def parse(page: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf8")))


def list_links(page: Path) -> Iterator[str]:
    """Every address that a page links to or shows."""
    for token in parse(page):
        for child in token.children or ():
            if address := child.attrGet("href") or child.attrGet("src"):
                yield str(address)
        if token.type == "fence" and (including := INCLUDING.match(token.info)):
            yield including[1]


@cache
def list_anchors(page: Path) -> frozenset[str]:
    """What a code host, and MyST, make of a page's headings; of equal headings the later ones get a number."""
    anchors: list[str] = []
    for opening, inline in pairwise(parse(page)):
        if opening.type == "heading_open":
            text = "".join(child.content for child in inline.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            repeats = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", anchor) is not None for anchor in anchors)
            anchors.append(f"{slug}-{repeats}" if repeats else slug)
    return frozenset(anchors)


@pytest.mark.parametrize("page", LINKING, ids=name_page)
def test_every_relative_link_leads_to_a_file_and_a_heading(page):
    for link in list_links(page):
        address = urlsplit(link)
        if address.scheme:
            continue
        target = (page.parent / unquote(address.path)).resolve() if address.path else page
        assert target.exists(), link
        assert target.is_relative_to(CHECKOUT), link
        if address.fragment and target.suffix == ".md":
            assert address.fragment in list_anchors(target), link


@pytest.mark.parametrize("page", CHECKED, ids=name_page)
def test_every_file_that_a_page_names_is_there(page):
    folders = "benchmarks|docker|docs|jaxmeter|launch|tests"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text(encoding="utf8"))

    assert [
        name for name in named if not any((root / name).exists() for root in (CHECKOUT, CHECKOUT / "jaxmeter"))
    ] == []


def test_the_reference_pages_are_those_of_the_code(tmp_path):
    """Fails after a help text, a metric or a suite has changed: nox -s docs writes the pages again."""
    import_script("reference").write_pages(tmp_path)

    assert read_pages(DOCS / "reference") == read_pages(tmp_path)


def read_pages(folder: Path) -> dict[str, str]:
    return {str(page.relative_to(folder)): page.read_text(encoding="utf8") for page in folder.rglob("*.md")}


@pytest.mark.parametrize("page", [CHECKOUT / "README.md", *OF_DOCS], ids=name_page)
def test_every_output_that_a_page_shows_is_made_by_a_recipe(page):
    shown = [token for token in parse(page) if token.type == "fence" and token.info == SHOWN]
    marked = list(outputs.OUTPUT.finditer(page.read_text(encoding="utf8")))

    assert [found["text"] for found in marked] == [token.content for token in shown]


def test_each_output_of_a_recipe_is_shown_once():
    shown = [
        found["name"]
        for page in outputs.list_pages()
        for found in outputs.OUTPUT.finditer(page.read_text(encoding="utf8"))
    ]

    assert sorted(shown) == sorted(name for names in outputs.RECIPES.values() for name in names)


@pytest.mark.parametrize("name", outputs.CODE)
def test_each_program_of_the_recipes_stands_on_its_page(name):
    assert compile(outputs.find_code(name), name, "exec").co_names


@pytest.mark.parametrize("recipe", [outputs.make_summary, outputs.show_frame])
def test_outputs_of_examples_are_what_the_commands_print_now(recipe, tmp_path):
    """Fails after an example or a text of the report has changed: python docs/outputs.py writes the pages again."""
    texts = recipe(outputs.Folder(tmp_path))

    for page in outputs.list_pages():
        text = page.read_text(encoding="utf8")
        assert outputs.replace_outputs(text, texts) == text


@pytest.mark.slow
@pytest.mark.alone  # it has to find the slowdown
def test_the_commands_of_a_comparison_print_what_is_shown(tmp_path):
    texts = outputs.compare_functions(outputs.Folder(tmp_path))

    assert set(texts) == set(outputs.RECIPES[outputs.compare_functions])
    for page in outputs.list_pages():
        for found in outputs.OUTPUT.finditer(page.read_text(encoding="utf8")):
            if text := texts.get(found["name"]):
                assert hide_numbers(text) == hide_numbers(found["text"])


def hide_numbers(text: str) -> str:
    """The first line without its numbers: where later ones break, and what they say, differs from run to run."""
    return " ".join(re.sub(r"\W*\d\S*", " ", text.splitlines()[0]).split())
