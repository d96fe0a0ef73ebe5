"""Stand-alone figures for slides and papers: the drawings of a page as SVG or PNG files, light or dark."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import resvg_py

from jaxmeter.reporting.draw.palette import Theme, draw_alone
from jaxmeter.reporting.view.page_model import Card, Figure, Page

Form = Literal["svg", "png"]

WIDTH = 720
"""Pixels of a drawing. Texts have the size of the page's."""

ZOOM = 3
"""Pixels of a PNG per pixel of a drawing: sharp on a slide."""

FONT = Path(__file__).with_name("DejaVuSans.ttf")
"""The font of a PNG, since a machine or a container may have none. Fonts of the machine add other scripts."""

LONGEST_PART = 40
"""Characters of one part of a file's name."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9.]+")
"""Characters that some file system or shell does not take, and the hyphen that separates parts."""


def list_figures(page: Page) -> dict[str, Figure]:
    """Return every figure of a page by the name of its file, without the ending.

    Names differ on file systems that ignore case, too.
    """
    by_name: dict[str, Figure] = {}
    used: set[str] = set()
    for parts, figure in _walk(page):
        words = (_NOT_IN_A_NAME.sub("_", part).strip("_.")[:LONGEST_PART].rstrip("_.") for part in parts)
        stem = "-".join(word for word in words if word)
        names = itertools.chain((stem,), (f"{stem}-{number}" for number in itertools.count(2)))
        name = next(name for name in names if name.lower() not in used)
        used.add(name.lower())
        by_name[name] = figure
    return by_name


def draw(figure: Figure, form: Form = "svg", theme: Theme = "light") -> bytes:
    """Return the figure as SVG, or as PNG; equal input gives equal bytes on one machine."""
    svg = draw_alone(figure, WIDTH, theme)
    if form == "svg":
        return svg.encode()
    return resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM, font_files=[str(FONT)])


def _walk(page: Page) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """Yield each figure with the parts of its name."""
    overview = page.overview
    first = (overview.changed, overview.jit, overview.time, overview.reports)
    yield from _walk_cards(("overview",), (*filter(None, first), *overview.cards, *overview.more, *overview.rooflines))
    if page.releases is not None:
        yield from _walk_cards(("releases",), page.releases.cards)
    for suite in page.suites:
        yield from _walk_cards(("suite", suite.name), suite.figures)
        for case in suite.cases:
            yield from _walk_cards(("case", suite.name, case.name), case.figures)


def _walk_cards(names: tuple[str, ...], cards: Iterable[Card]) -> Iterator[tuple[tuple[str, ...], Figure]]:
    for card in cards:
        if card.figure is not None:
            yield (*names, card.id), card.figure
        for quantity, figure in card.others:
            yield (*names, card.id, quantity), figure
