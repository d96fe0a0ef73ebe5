"""Stand-alone figures for slides and papers: matplotlib draws those of a page as SVG or PNG, light or dark."""

from __future__ import annotations

import io
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas

from jaxmeter.reporting.draw.text import FONT_SIZE
from jaxmeter.reporting.view.figure_model import Curves, Figure, Forest, Points, Roofline, Stacks
from jaxmeter.reporting.view.overview_model import Card
from jaxmeter.reporting.view.page_model import Page

from .plots.curves import draw_curves
from .plots.forest import draw_forest
from .plots.points import draw_points
from .plots.roofline import draw_roofline
from .plots.sheet import Theme, fit_text
from .plots.stacks import draw_stacks

Form = Literal["svg", "png"]

DOTS_PER_INCH = 200
"""Of a PNG: sharp on a slide."""

LONGEST_PART = 40
"""Characters of one part of a file's name."""

LONGEST_ALT = 20_000.0
"""Room of what a figure shows in words, in points."""

_FORMATS: dict[Form, tuple[type[FigureCanvasSVG | FigureCanvasAgg], str, dict[str, str | None]]] = {
    "svg": (FigureCanvasSVG, "Title", {"Creator": None, "Date": None, "Format": None, "Type": None}),
    "png": (FigureCanvasAgg, "Description", {"Software": None}),
}
"""By format: its canvas, the field for what a figure shows, and those without which equal figures have equal bytes."""

_SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "jaxmeter",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": FONT_SIZE,
}

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9.]+")
"""Characters that some file system or shell does not take, and the hyphen that separates parts."""


def list_figures(page: Page) -> dict[str, Figure]:
    """Return every figure of a page by the name of its file, without the ending.

    Names differ on file systems that ignore case, too.
    """
    found: dict[str, Figure] = {}
    used: set[str] = set()
    for parts, figure in _walk(page):
        words = (_NOT_IN_A_NAME.sub("_", part).strip("_.")[:LONGEST_PART].rstrip("_.") for part in parts)
        stem = "-".join(word for word in words if word)
        names = itertools.chain((stem,), (f"{stem}-{number}" for number in itertools.count(2)))
        name = next(name for name in names if name.lower() not in used)
        used.add(name.lower())
        found[name] = figure
    return found


def draw(figure: Figure, form: Form = "svg", theme: Theme = "light") -> bytes:
    """Return the figure as SVG, or as PNG; equal input gives equal bytes."""
    open_canvas, alt, metadata = _FORMATS[form]
    with matplotlib.style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # It only measures text; whoever shows the figure has fonts of their own for a letter that its font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        canvas = make_canvas(figure, theme)
        open_canvas(canvas)
        file = io.BytesIO()
        metadata = {**metadata, alt: fit_text(figure.alt, LONGEST_ALT)}
        canvas.savefig(file, format=form, dpi=DOTS_PER_INCH, metadata=metadata)
        return file.getvalue()


def make_canvas(figure: Figure, theme: Theme = "light") -> Canvas:
    """Return the figure as matplotlib's, whatever the user's own settings of matplotlib are."""
    with matplotlib.style.context(["default", _SETTINGS]):
        match figure:
            case Points():
                return draw_points(figure, theme)
            case Curves():
                return draw_curves(figure, theme)
            case Stacks():
                return draw_stacks(figure, theme)
            case Forest():
                return draw_forest(figure, theme)
            case Roofline():
                return draw_roofline(figure, theme)


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
