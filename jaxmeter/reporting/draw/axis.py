"""The first mark: an axis with hairlines, ticks and a title."""

from __future__ import annotations

import itertools

from .canvas import Canvas
from .scale import Scale

TICK_DROP, TITLE_DROP = 16, 30
"""Pixels from the plot to the baselines of ticks and of the title below them. The lowest tick at the left reaches 7."""

BELOW = 35
"""Pixels that an axis below a plot takes."""

TICK_GAP = 5


def draw_x_axis(canvas: Canvas, scale: Scale, top: float, bottom: float, title: str) -> None:
    """Draw hairlines over the plot, ticks below it, and the title at the right."""
    canvas.grid((scale(tick.value) for tick in scale.ticks), top, bottom, is_vertical=True)
    for tick in scale.ticks:
        canvas.text(scale(tick.value), bottom + TICK_DROP, tick.text, "tick", anchor="middle")
    canvas.text(max(scale.start, scale.end), bottom + TITLE_DROP, title, "title", anchor="end")


def draw_y_axis(canvas: Canvas, scale: Scale, left: float, right: float) -> None:
    """Draw hairlines over the plot, and ticks left of it; the title stands above the plot."""
    canvas.grid((scale(tick.value) for tick in scale.ticks), left, right, is_vertical=False)
    for tick in scale.ticks:
        canvas.text(left - TICK_GAP, scale(tick.value) + 4, tick.text, "tick", anchor="end")


def draw_limit(canvas: Canvas, x: float, top: float, bottom: float, text: str) -> None:
    """Draw a dashed vertical line, and its name."""
    canvas.line(x, top, x, bottom, "limit")
    name_limit(canvas, x, top, text)


def name_limit(canvas: Canvas, x: float, top: float, text: str) -> None:
    """Write the name of a vertical line; it ends above the line, since a column of notes may begin right of it."""
    canvas.text(x, top - 3, text, "label b", anchor="end")


def draw_level_name(canvas: Canvas, right: float, y: float, text: str, rooms: tuple[float, ...]) -> None:
    """Write the name of a horizontal line above it, else below it, in the first room that no other text takes."""
    for room, drop in itertools.product(rooms, (-4, 12)):
        if canvas.text(right, y + drop, text, "direct label b", anchor="end", room=room) is not None:
            return
