"""A roofline: rates over operational intensity, below what the device can reach."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from markupsafe import Markup

from ..view.page_model import Roofline
from .canvas import Anchor, Canvas, measure_text
from .rows import draw_mark, list_numbers
from .scale import BELOW, TICK_GAP, Scale, draw_x_axis, draw_y_axis, fit_scale

HEIGHT = 260
TOP, EDGE = 22, 14
RADIUS = 3.5
NAME_GAP = 9
ABOVE = 6
"""From a roof to its name: no line crosses one, so names of roofs that are near each other stand above them all."""


def draw_roofline(figure: Roofline, width: int) -> Markup:
    """Return the SVG of a figure."""
    canvas = Canvas(width, HEIGHT, figure.alt)
    lower = HEIGHT - BELOW
    y_scale = fit_scale(figure.y, _list_rates(figure), lower, TOP + 14, is_vertical=True)
    left = max((measure_text(tick.text) for tick in y_scale.ticks), default=0.0) + TICK_GAP + 6
    right = width - EDGE
    x_scale = fit_scale(figure.x, _list_intensities(figure), left, right)
    canvas.text(2, 11, figure.y.title, "title", room=width / 2)
    draw_y_axis(canvas, y_scale, left, right)
    draw_x_axis(canvas, x_scale, TOP + 14, lower, figure.x.title)
    for roof in figure.roofs:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in _bend(roof.bandwidth, roof.peak, x_scale, y_scale))
        canvas.add("polyline", "ink", points=path, stroke_width=1.5)
        ridge = x_scale(max(roof.peak / roof.bandwidth, x_scale.low))
        for along in range(round(ridge), round(right), NAME_GAP):
            canvas.reserve(along, y_scale(roof.peak), 1)
    highest = min((y_scale(roof.peak) for roof in figure.roofs), default=0.0)
    for roof in sorted(figure.roofs, key=lambda roof: roof.peak):
        heights = (y_scale(roof.peak) - ABOVE, highest - ABOVE, highest - 3 * ABOVE)
        for room, height in itertools.product((right, right - left), heights):
            if canvas.text(right, height, roof.text, "direct label b", anchor="end", room=room) is not None:
                break
    shown = [dot for dot in figure.dots if x_scale.shows(dot.x) and y_scale.shows(dot.mark.estimate.value)]
    for dot in shown:
        draw_mark(canvas, dot.mark, y_scale, x_scale(dot.x), is_vertical=True, radius=RADIUS)
    places = [(dot.name, x_scale(dot.x), y_scale(dot.mark.estimate.value)) for dot in shown]
    for _, x, y in places:
        canvas.reserve(x, y, RADIUS)
    named: set[str] = set()
    for name, x, y in places:
        if name not in named and _write_name(canvas, name, x, y, (left, right)):
            named.add(name)
    return canvas.render()


def _write_name(canvas: Canvas, name: str, x: float, y: float, plot: tuple[float, float]) -> bool:
    """Write a name at the right of a dot, else at its left; return whether either had room."""
    width, (left, right) = measure_text(name), plot
    sides: tuple[tuple[float, float, Anchor], ...] = (
        (x + NAME_GAP, right - x, "start"),
        (x - NAME_GAP, x - left, "end"),
    )
    for at, room, anchor in sides:
        if width + NAME_GAP <= room and canvas.text(at, y + 4, name, "direct note", anchor=anchor) is not None:
            return True
    return False


def _bend(bandwidth: float, peak: float, x_scale: Scale, y_scale: Scale) -> Iterator[tuple[float, float]]:
    """Yield the corners of a roof within the plot: along the memory's limit to the ridge, then along the peak."""
    ridge = peak / bandwidth
    first = max(x_scale.low, y_scale.low / bandwidth)
    if first < ridge:
        yield x_scale(first), y_scale(first * bandwidth)
    yield x_scale(max(ridge, x_scale.low)), y_scale(peak)
    yield x_scale(x_scale.high), y_scale(peak)


def _list_rates(figure: Roofline) -> Iterator[float]:
    for dot in figure.dots:
        yield from list_numbers(dot.mark)
    yield from (roof.peak for roof in figure.roofs)


def _list_intensities(figure: Roofline) -> Iterator[float]:
    yield from (dot.x for dot in figure.dots)
    yield from (roof.peak / roof.bandwidth for roof in figure.roofs)
