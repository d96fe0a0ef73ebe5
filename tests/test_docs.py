"""The documentation: what its pages link to is there, and its reference pages describe the code as it is."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

CHECKOUT = Path(__file__).parents[1]
DOCS = CHECKOUT / "docs"
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
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
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
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    folders = "benchmarks|docker|docs|jaxmeter|launcher|tests"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text(encoding="utf8"))

    assert [name for name in named if not (CHECKOUT / name).exists()] == []


def test_the_reference_pages_are_those_of_the_code(tmp_path: Path) -> None:
    """Fails after a help text, a metric or a suite has changed: nox -s docs writes the pages again."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)

    reference.write_pages(tmp_path)

    assert read_pages(DOCS / "reference") == read_pages(tmp_path)


def read_pages(folder: Path) -> dict[str, str]:
    return {str(page.relative_to(folder)): page.read_text(encoding="utf8") for page in folder.rglob("*.md")}
