"""Roofline: rates over operational intensity, below what a device can reach."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure as Canvas

from jaxmeter.reporting import numbers
from jaxmeter.reporting.draw.canvas import Box
from jaxmeter.reporting.draw.scale import Scale, fit_scale
from jaxmeter.reporting.draw.text import measure_text
from jaxmeter.reporting.view.figure_model import Dot, Roof, Roofline

from .marks import SIZE, draw_mark, list_entries, list_values
from .sheet import GAP, LINE, MARGIN, Sheet, Theme, arrange_key, fit_text, measure_widest

WIDTH, PLOT_HEIGHT = 480.0, 260.0

LEAST_SIDE = 30.0
"""Room right of the axis: half the text of its last tick."""

RADIUS = SIZE / 2

MOST_NAME, MOST_TICK = 160.0, 90.0
"""Room of a dot's name and of a tick's text; longer ones are shortened."""


def draw_roofline(figure: Roofline, theme: Theme) -> Canvas:
    """Draw a solid line for each roof, and below the roofs a mark for each rate, with its name where it has room."""
    marks = [dot.mark for dot in figure.dots]
    roofs = [
        roof for roof in figure.roofs if all((numbers.usable(one) or 0) > 0 for one in (roof.bandwidth, roof.peak))
    ]
    key = arrange_key(list_entries(marks), WIDTH)
    top = MARGIN + 2 * LINE
    bottom = top + PLOT_HEIGHT
    y = fit_scale(figure.y, [*list_values(marks), *(roof.peak for roof in roofs)], bottom, top, is_vertical=True)
    start = MARGIN + measure_widest([tick.text for tick in y.ticks], MOST_TICK) + GAP
    intensities = [*(dot.x for dot in figure.dots), *(roof.peak / roof.bandwidth for roof in roofs)]
    x = fit_scale(figure.x, intensities, start, WIDTH - LEAST_SIDE)
    sheet = Sheet(WIDTH, bottom + (2 + len(key)) * LINE + MARGIN, theme)
    axes = sheet.open_axes(x.start, top, x.end, bottom)
    sheet.set_scale(axes, x, "x")
    sheet.set_scale(axes, y, "y")
    sheet.write_titles(figure.x.title, figure.y.title, MARGIN, MARGIN + LINE / 2, x.end, bottom + 1.5 * LINE)
    for roof in roofs:
        corners = list(_bend(roof, x, y))
        axes.plot(*zip(*corners, strict=True), color=sheet.find_colour("ink"), linewidth=1.5, zorder=2, gid="roof")
    for dot in figure.dots:
        if _shows(x, y, dot):
            draw_mark(sheet, axes, y, dot.mark, dot.x, is_vertical=True)
    _write_names(sheet, figure, roofs, x, y)
    sheet.write_key(key, bottom + 2 * LINE)
    return sheet.canvas


def _bend(roof: Roof, x: Scale, y: Scale) -> Iterator[tuple[float, float]]:
    """Yield the corners of a roof: along the memory's limit to the ridge, then along the peak."""
    ridge, first = roof.peak / roof.bandwidth, max(x.low, y.low / roof.bandwidth)
    if first < ridge:
        yield first, first * roof.bandwidth
    yield max(ridge, x.low), roof.peak
    yield x.high, roof.peak


def _write_names(sheet: Sheet, figure: Roofline, roofs: list[Roof], x: Scale, y: Scale) -> None:
    """Write what the roofs are above their right ends, and names next to their marks, unless they cover anything."""
    shown = [(x(dot.x), y(dot.mark.estimate.value), dot.name) for dot in figure.dots if _shows(x, y, dot)]
    used = [Box(at - RADIUS, height - RADIUS, at + RADIUS, height + RADIUS) for at, height, _ in shown]

    def try_write(at: float, height: float, text: str, colour: str) -> bool:
        box = Box(at, height - LINE / 2, at + measure_text(text), height + LINE / 2)
        is_inside = x.start <= box.left and box.right <= sheet.width and y.end - LINE <= height <= y.start
        if not is_inside or any(box.covers(other) for other in used):
            return False
        used.append(box)
        sheet.write(at, height, text, colour)
        return True

    for roof in roofs:
        text = fit_text(roof.text, x.end - x.start)
        try_write(x.end - measure_text(text), y(roof.peak) - LINE / 2, text, "limit")
    for at, height, name in shown:
        text = fit_text(name, MOST_NAME)
        right, left, middle = at + GAP, at - GAP - measure_text(text), at - measure_text(text) / 2
        places = ((right, height), (left, height), (middle, height + LINE), (middle, height - LINE))
        any(try_write(*place, text, "note") for place in places)


def _shows(x: Scale, y: Scale, dot: Dot) -> bool:
    return x.shows(dot.x) and y.shows(dot.mark.estimate.value)
