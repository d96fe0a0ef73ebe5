"""Panels of a figure as coordinates of small SVG drawings: a template places them, a style sheet colours them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxmeter.reporting.render.ticks import SCALES, limits, powers
from jaxmeter.reporting.view.page_model import Panel, Plot, Series

WIDTH, HEIGHT = 180, 150
"""Two fit beside each other on a phone, where text of 11 pixels stays as large."""

LEFT, RIGHT, TOP, BOTTOM = 48, WIDTH - 16, 18, HEIGHT - 30
"""Edges of the plot within it; around them stand title, ticks and the name of the axis."""

X_UNIT = ""
"""Of the axis at the bottom: a size, which has none."""

MOST_X_TICKS, MOST_Y_TICKS = 3, 5


def px(value: float) -> str:
    """Pixels as an SVG holds them, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


MARKERS: tuple[Callable[[float, float], str], ...] = (
    lambda x, y: f"M{px(x - 2.5)} {px(y)}a2.5 2.5 0 1 1 0 .01z",
    lambda x, y: f"M{px(x - 2.5)} {px(y - 2.5)}h5v5h-5z",
    lambda x, y: f"M{px(x)} {px(y - 3.5)}l3.5 3.5l-3.5 3.5l-3.5 -3.5z",
    lambda x, y: f"M{px(x)} {px(y - 3)}l3 5.5h-6z",
)
"""Paths of a circle, a square, a diamond and a triangle around a point.

The circle is an arc that ends beside its start."""

COLOURS, DASHES = 3, ("", "5 3", "2 3")
"""Colour, shape and dash together tell more lines apart than there are colours."""


@dataclass(frozen=True)
class Tick:
    """A tick of an axis, in pixels along it."""

    at: float
    text: str


@dataclass(frozen=True)
class Dot:
    """A point, with the ends of its interval where they lie within the panel; a doubtful one is hollow."""

    x: float
    y: float
    shape: str
    low: float | None
    high: float | None
    doubtful: bool


@dataclass(frozen=True)
class Line:
    """A series: `colour` and `dash` name its looks."""

    name: str
    colour: int
    dash: str
    points: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Drawing:
    """One panel in pixels; `marked` is the x of the line at what is spoken of."""

    title: str
    x_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    marked: float | None


@dataclass(frozen=True)
class Key:
    """A line's looks, for the legend."""

    name: str
    colour: int
    dash: str
    shape: str


def draw(plot: Plot) -> tuple[Drawing, ...]:
    """The panels of a figure; a series looks the same in all of them."""
    names = _names(plot)
    return tuple(_draw(panel, names) for panel in plot.panels)


def place_marks(plot: Plot) -> tuple[float | None, ...]:
    """What `draw` marks in each panel, without drawing it: a case of a thousand shows where it is on one figure."""
    return tuple(_mark(panel, _make_x_scale(panel)) for panel in plot.panels)


def list_keys(plot: Plot) -> tuple[Key, ...]:
    """The legend."""
    names = enumerate(_names(plot))
    middle = 7.0
    return tuple(Key(name, *_looks(index), _shape(index, 2 * middle, middle)) for index, name in names)


def _names(plot: Plot) -> list[str]:
    return list(dict.fromkeys(series.name for panel in plot.panels for series in panel.series))


def _looks(index: int) -> tuple[int, str]:
    return index % COLOURS, DASHES[index // COLOURS % len(DASHES)]


def _draw(panel: Panel, names: Sequence[str]) -> Drawing:
    xs = [point.x for series in panel.series for point in series.points]
    ys = [point.y for series in panel.series for point in series.points]
    x_base, write_x = SCALES[X_UNIT]
    y_base, write_y = SCALES[panel.unit]
    to_x = _make_x_scale(panel)
    to_y = make_scale(*limits(ys, y_base), BOTTOM, TOP)
    return Drawing(
        title=panel.title,
        x_label=panel.x_label,
        x_ticks=tuple(Tick(to_x(one), write_x(one)) for one in powers(min(xs), max(xs), x_base, MOST_X_TICKS)),
        y_ticks=tuple(Tick(to_y(one), write_y(one)) for one in powers(min(ys), max(ys), y_base, MOST_Y_TICKS)),
        lines=tuple(_line(series, names.index(series.name), to_x, to_y) for series in panel.series),
        marked=_mark(panel, to_x),
    )


def _make_x_scale(panel: Panel) -> Callable[[float], float]:
    xs = [point.x for series in panel.series for point in series.points]
    return make_scale(*limits(xs, SCALES[X_UNIT][0]), LEFT, RIGHT)


def _mark(panel: Panel, to_x: Callable[[float], float]) -> float | None:
    return None if panel.marked is None else to_x(panel.marked)


def _line(series: Series, index: int, to_x: Callable[[float], float], to_y: Callable[[float], float]) -> Line:
    colour, dash = _looks(index)
    dots = []
    for point in series.points:
        x, y = to_x(point.x), to_y(point.y)
        low, high = (None, None) if point.bounds is None else map(to_y, point.bounds)
        dots.append(Dot(x, y, _shape(index, x, y), low, high, point.doubtful))
    return Line(series.name, colour, dash, " ".join(f"{px(dot.x)},{px(dot.y)}" for dot in dots), tuple(dots))


def make_scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    """From a value to pixels, logarithmically; what lies outside is drawn at the edge."""
    span = math.log(high) - math.log(low)

    def place(value: float) -> float:
        share = (math.log(value) - math.log(low)) / span if value > 0 else 0.0
        return begin + (end - begin) * min(1.0, max(0.0, share))

    return place


def _shape(index: int, x: float, y: float) -> str:
    return MARKERS[index % len(MARKERS)](x, y)
