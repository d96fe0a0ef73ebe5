"""Dumbbells as coordinates of a small SVG drawing: a name above each bar, a mark for each mode on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jaxmeter.reporting.render.panels import MARKERS, Tick, make_scale, px
from jaxmeter.reporting.render.ticks import SCALES, limits, powers
from jaxmeter.reporting.text import shorten
from jaxmeter.reporting.view.page_model import Bar, Dumbbells

WIDTH = 360
"""As wide as a phone, where text of 11 pixels stays as large."""

LEFT, RIGHT = 6, WIDTH - 6
TOP, STEP, BELOW = 4, 27, 22
"""Above the first bar, for each bar with its name, and for the axis."""

NAME, LINE = 11, 19
"""Where the name and the bar are within a step."""

APART, ASIDE = 6, 5
"""Marks of one bar nearer to each other than the first are drawn above each other, by the second."""

MOST_TICKS = 5
LONGEST_NAME = 56
"""Characters that fit beside each other."""

MODES = {
    "eager": (0, 0, True, "○"),
    "jit": (0, 0, False, "●"),
    "aot": (1, 1, False, "■"),
    "mixed": (3, 2, False, "▲"),
}
OTHERS = (2, 1, True, "◇")
"""By mode: marker, colour, whether it is hollow, and a sign for the legend."""


@dataclass(frozen=True)
class Marks:
    """All marks of one mode: a path of their shapes, and one of their intervals."""

    mode: str
    colour: int
    hollow: bool
    shapes: str
    bounds: str
    sign: str


@dataclass(frozen=True)
class Name:
    """What a bar is called, and the y of its baseline."""

    text: str
    y: float


@dataclass(frozen=True)
class Drawing:
    """The figure in pixels; `lines` is the path of all bars."""

    height: int
    bottom: int
    names: tuple[Name, ...]
    lines: str
    ticks: tuple[Tick, ...]
    marks: tuple[Marks, ...]


def draw(figure: Dumbbells) -> Drawing:
    """The figure as a drawing."""
    times = [end.time_s for bar in figure.bars for end in bar.ends]
    base, write = SCALES["s"]
    to_x = make_scale(*limits(times, base), LEFT, RIGHT)
    bottom = TOP + STEP * len(figure.bars)
    placed = [(TOP + STEP * index, bar) for index, bar in enumerate(figure.bars)]
    modes = dict.fromkeys(end.mode for bar in figure.bars for end in bar.ends)
    ordered = sorted(modes, key=lambda mode: list(MODES).index(mode) if mode in MODES else len(MODES))
    return Drawing(
        height=bottom + BELOW,
        bottom=bottom,
        names=tuple(Name(shorten(bar.name, LONGEST_NAME), top + NAME) for top, bar in placed),
        lines="".join(_line(bar, top + LINE, to_x) for top, bar in placed),
        ticks=tuple(Tick(to_x(one), write(one)) for one in powers(min(times), max(times), base, MOST_TICKS)),
        marks=tuple(_mark(mode, placed, to_x) for mode in ordered),
    )


def _line(bar: Bar, y: float, to_x: Callable[[float], float]) -> str:
    places = [to_x(end.time_s) for end in bar.ends]
    return f"M{px(min(places))} {px(y)}H{px(max(places))}"


def _mark(mode: str, placed: Iterable[tuple[int, Bar]], to_x: Callable[[float], float]) -> Marks:
    marker, colour, hollow, sign = MODES.get(mode, OTHERS)
    shapes, bounds = [], []
    for top, bar in placed:
        shifts = _shifts([to_x(end.time_s) for end in bar.ends])
        for end, shift in zip(bar.ends, shifts, strict=True):
            if end.mode != mode:
                continue
            y = top + LINE + shift
            shapes.append(MARKERS[marker](to_x(end.time_s), y))
            if end.bounds is not None:
                low, high = map(to_x, end.bounds)
                bounds.append(f"M{px(low)} {px(y)}H{px(high)}")
    return Marks(mode, colour, hollow, "".join(shapes), "".join(bounds), sign)


def _shifts(places: Sequence[float]) -> list[float]:
    """How far down each mark of a bar is moved, so that none hides another."""
    shifts = [0.0] * len(places)
    order = sorted(range(len(places)), key=lambda index: places[index])
    crowds: list[list[int]] = []
    for index in order:
        if crowds and places[index] - places[crowds[-1][-1]] < APART:
            crowds[-1].append(index)
        else:
            crowds.append([index])
    for crowd in crowds:
        for position, index in enumerate(crowd):
            shifts[index] = ASIDE * (position - (len(crowd) - 1) / 2)
    return shifts
