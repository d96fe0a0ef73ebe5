"""The second mark: an estimate with its interval, the processes it is of, and a shape for each kind of device."""

from __future__ import annotations

from collections.abc import Iterator

from ..view.figure_model import Hue, Mark
from .canvas import Canvas
from .scale import Scale

RADIUS = 4.0
DOT_DROP = 9.0
"""Pixels below the estimate at which its processes lie."""

"""Width of an interval's bar."""

REFERENCE_HALF = 7.0
"""Half the height of the bar that is a row's reference."""


def list_numbers(mark: Mark) -> Iterator[float]:
    """Yield the numbers that a mark shows, which the scale must hold: the estimate, both bounds, the processes."""
    estimate = mark.estimate
    yield estimate.value
    if estimate.low is not None and estimate.high is not None:
        yield from (estimate.low, estimate.high)
    yield from estimate.dots


def draw_mark(
    canvas: Canvas, mark: Mark, scale: Scale, across: float, *, is_vertical: bool = False, radius: float = RADIUS
) -> None:
    """Draw a mark where its value lies on the scale; nothing where the scale cannot show it.

    Args:
      across: The pixel on the other axis.
      is_vertical: Whether the scale is of the y axis.
    """
    estimate = mark.estimate
    if not scale.shows(estimate.value):
        return
    with canvas.group(f"m {mark.hue.value}", title=mark.says, variant=mark.variant, case=mark.case):
        dots = [scale(value) for value in estimate.dots if scale.shows(value)]
        canvas.dots([(across + DOT_DROP, at) if is_vertical else (at, across + DOT_DROP) for at in dots])
        bounds = [bound for bound in (estimate.low, estimate.high) if bound is not None and scale.shows(bound)]
        if len(bounds) == 2:
            low, high = map(scale, bounds)
            ends = (across, low, across, high) if is_vertical else (low, across, high, across)
            canvas.line(*ends)
        at = scale(estimate.value)
        x, y = (across, at) if is_vertical else (at, across)
        if mark.is_reference:
            canvas.line(x, y - REFERENCE_HALF, x, y + REFERENCE_HALF)
        else:
            draw_shape(canvas, mark.hue, x, y, radius, is_hollow=estimate.is_doubtful)


def draw_shape(canvas: Canvas, hue: Hue, x: float, y: float, radius: float, *, is_hollow: bool = False) -> None:
    """Draw the shape of a hue: a GPU's is a square, a TPU's a diamond, any other a circle."""
    classes = "hollow" if is_hollow else ""
    if hue is Hue.GPU:
        half = radius * 0.9
        canvas.add("rect", classes, x=x - half, y=y - half, width=2 * half, height=2 * half)
    elif hue is Hue.TPU:
        half = radius * 1.3
        canvas.add(
            "path",
            classes,
            d=f"M{x:.1f} {y - half:.1f}l{half:.1f} {half:.1f}l{-half:.1f} {half:.1f}l{-half:.1f} {-half:.1f}z",
        )
    else:
        canvas.add("circle", classes, cx=x, cy=y, r=radius)
