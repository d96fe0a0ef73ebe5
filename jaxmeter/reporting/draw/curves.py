"""Curves: a number over a size, named at its last point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup

from ..view.page_model import Axis, Curve, CurvePanel, CurvePoint, Curves, Hue
from .canvas import Canvas, measure_text
from .rows import draw_mark, list_numbers, spread
from .scale import BELOW, TICK_GAP, Scale, draw_level_name, draw_x_axis, draw_y_axis, fit_scale, fit_sizes

NARROWEST = 240
"""Pixels that a panel needs next to another one."""

HEIGHTS = ((320, 150), (10_000, 180))
"""Heights of a panel by its width."""

TOP = 22
NAME_GAP, NAME_STEP = 7, 13
"""Pixels from a curve's end to its name, and between two names."""

NEAR = (0, -1, 1, -2, 2)
"""Lines away from where a text belongs, in the order in which they are tried."""

NAME_SHARE = 0.34
"""The most of a panel's width that names take."""

MOST_IN_FOCUS = 2
"""Curves of a panel in full colour; more are not told apart."""

FOCUS, CONTEXT = 3.5, 2.5
"""Radius of a mark."""

BAND = 14.0
"""Width of the band that marks a size."""


def draw_curves(figure: Curves, width: int) -> Markup:
    """Return the SVG of a figure: panels side by side, or one below the other where there is no room."""
    count = len(figure.panels)
    columns = max(1, min(count, width // NARROWEST))
    each = width / columns
    height = next(tall for wide, tall in HEIGHTS if each <= wide)
    canvas = Canvas(width, height * -(-count // columns), figure.alt)
    for number, panel in enumerate(figure.panels):
        _draw_panel(canvas, panel, (number % columns) * each, (number // columns) * height, each, height)
    return canvas.render()


def _draw_panel(canvas: Canvas, panel: CurvePanel, left: float, top: float, width: float, height: float) -> None:
    panel = replace(panel, curves=_limit_focus(panel.curves))
    upper, lower = top + TOP, top + height - BELOW
    y_scale = fit_scale(panel.y, _list_values(panel), lower, upper, is_vertical=True)
    start = left + max((measure_text(tick.text) for tick in y_scale.ticks), default=0.0) + TICK_GAP + 6
    names = max((measure_text(_write_name(curve, panel.y), is_bold=True) for curve in panel.curves), default=0.0)
    end = left + width - min(names, NAME_SHARE * width) - NAME_GAP - 6
    sizes = [size for curve in panel.curves for size in curve.sizes]
    here = () if panel.here is None else (panel.here,)
    x_scale = fit_sizes(panel.x, [*sizes, *here], start + 6, end)
    canvas.text(left + 2, top + 11, panel.title or panel.y.title, "title", room=width - 4)
    if panel.here is not None and x_scale.shows(panel.here):
        at = x_scale(panel.here)
        canvas.add("rect", "here", x=at - BAND / 2, y=upper, width=BAND, height=lower - upper)
    draw_y_axis(canvas, y_scale, start, end)
    draw_x_axis(canvas, x_scale, lower, lower, panel.x.title)
    for limit in panel.limits:
        if y_scale.shows(limit.value):
            y = y_scale(limit.value)
            canvas.line(start, y, end, y, "limit")
            # At the left: most curves come near their limit at the right, where their names are, too.
            if canvas.text(start + 4, y - 4, limit.text, "direct label b", room=end - start - 4) is None:
                draw_level_name(canvas, end, y, limit.text, (end - left, end - start))
    for curve in sorted(panel.curves, key=lambda curve: curve.in_focus):  # what is in focus lies on top
        _draw_curve(canvas, curve, x_scale, y_scale)
    _write_names(canvas, panel, x_scale, y_scale, left + width)
    _write_endings(canvas, panel, x_scale, y_scale)


def _draw_curve(canvas: Canvas, curve: Curve, x_scale: Scale, y_scale: Scale) -> None:
    """Draw the marks of a curve, and lines between them; a hidden point or another device interrupts a line."""

    def find_hue(point: CurvePoint) -> Hue | None:
        is_shown = x_scale.shows(point.x) and y_scale.shows(point.mark.estimate.value)
        return point.mark.hue if is_shown else None

    context = "" if curve.in_focus else " ctx"
    width, radius = (2.0, FOCUS) if curve.in_focus else (1.5, CONTEXT)
    for hue, run in itertools.groupby(curve.points, find_hue):
        if hue is None:
            continue
        points = list(run)
        path = " ".join(f"{x_scale(point.x):.1f},{y_scale(point.mark.estimate.value):.1f}" for point in points)
        with canvas.group(f"m {hue.value}{context}", title=curve.name, variant=points[-1].mark.variant):
            if len(points) > 1:
                canvas.add("polyline", points=path, stroke_width=width)
        with canvas.group(f"row{context}"):
            for point in points:
                draw_mark(canvas, point.mark, y_scale, x_scale(point.x), is_vertical=True, radius=radius)


def _limit_focus(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """Return the curves, of which only the first few stay in focus."""
    kept = [number for number, curve in enumerate(curves) if curve.in_focus][:MOST_IN_FOCUS]
    return tuple(replace(curve, in_focus=number in kept) for number, curve in enumerate(curves))


def _write_names(canvas: Canvas, panel: CurvePanel, x_scale: Scale, y_scale: Scale, right: float) -> None:
    """Write names at the last points, pushed apart; where they do not fit, those in focus come first."""
    low, high = min(y_scale.start, y_scale.end) + 4, max(y_scale.start, y_scale.end) + 4
    columns: dict[float, list[tuple[Curve, float]]] = {}
    for curve in sorted(panel.curves, key=lambda curve: not curve.in_focus):
        if any(x_scale.shows(point.x) for point in curve.points):
            x, y = _find_end(curve, x_scale, y_scale)
            columns.setdefault(x, []).append((curve, y + 4))
    most = int((high - low) / NAME_STEP) + 1
    placed = []
    for x, ends in columns.items():
        places = spread([y for _, y in ends[:most]], NAME_STEP, low, high)
        placed += [(curve, x, y) for (curve, _), y in zip(ends, places, strict=False)]
    # What is in focus first, then names at the right, which cannot move into a plot.
    for curve, x, y in sorted(placed, key=lambda place: (not place[0].in_focus, -place[1])):
        hue = curve.points[-1].mark.hue if curve.in_focus else Hue.INK
        text = _write_name(curve, panel.y)
        classes = f"direct b {hue.value}" if curve.in_focus else "direct note"
        for at in (y + step * NAME_STEP for step in NEAR):
            is_inside = low <= at <= high
            if is_inside and canvas.text(x + NAME_GAP, at, text, classes, room=right - x - NAME_GAP) is not None:
                break


def _write_endings(canvas: Canvas, panel: CurvePanel, x_scale: Scale, y_scale: Scale) -> None:
    """Write why a curve ends, at the size that has no number, as high as the last one."""
    low, high = min(y_scale.start, y_scale.end) + 4, max(y_scale.start, y_scale.end) + 4
    for curve in panel.curves:
        has_end = any(x_scale.shows(point.x) for point in curve.points)
        if curve.ending is None or not has_end or not x_scale.shows(curve.ending.x):
            continue
        x, (_, y) = x_scale(curve.ending.x), _find_end(curve, x_scale, y_scale)
        classes = f"direct {curve.points[-1].mark.hue.value}" if curve.in_focus else "direct note"
        for at in (y + 4 + step * NAME_STEP for step in NEAR):
            if low <= at <= high and canvas.text(x, at, curve.ending.text, classes, anchor="middle") is not None:
                break


def _write_name(curve: Curve, axis: Axis) -> str:
    """Return the name of a curve, with its value where all its values are 0 and the axis cannot show them."""
    is_zero = axis.is_log and all(point.mark.estimate.value == 0 for point in curve.points)
    return f"{curve.name}: 0" if is_zero else curve.name


def _find_end(curve: Curve, x_scale: Scale, y_scale: Scale) -> tuple[float, float]:
    """Return where a curve ends: at the last point that the axes show, else at the bottom."""
    points = [point for point in curve.points if x_scale.shows(point.x)]
    shown = [point for point in points if y_scale.shows(point.mark.estimate.value)]
    if shown:
        return x_scale(shown[-1].x), y_scale(shown[-1].mark.estimate.value)
    return x_scale(points[-1].x), y_scale.start


def _list_values(panel: CurvePanel) -> Iterator[float]:
    for curve in panel.curves:
        for point in curve.points:
            yield from list_numbers(point.mark)
    yield from (limit.value for limit in panel.limits)
