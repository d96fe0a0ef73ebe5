"""Marks of estimates: a shape for each device, hollow where the number is doubtful, a bar where it is the reference."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from matplotlib.axes import Axes

from jaxmeter.reporting.draw.scale import Scale
from jaxmeter.reporting.view.figure_model import CHANGE_SIGNS, DEVICE_SIGNS, Hue, Limit, Mark

from .sheet import Entry, Sheet

SHAPES = {Hue.CPU: "o", Hue.GPU: "s", Hue.TPU: "D", Hue.INK: "o", Hue.SLOWER: "^", Hue.FASTER: "v"}
SIGNS = DEVICE_SIGNS | CHANGE_SIGNS
WORDS = {Hue.CPU: "CPU", Hue.GPU: "GPU", Hue.TPU: "TPU", Hue.SLOWER: "slower", Hue.FASTER: "faster"}

REFERENCE = ((-0.09, -0.5), (0.09, -0.5), (0.09, 0.5), (-0.09, 0.5), (-0.09, -0.5))
"""A bar as a marker, since that of matplotlib cannot be hollow."""

SIZE, SMALL_SIZE, REFERENCE_SIZE, DOT_SIZE = 6.5, 3.5, 13.0, 3.5
INTERVAL_WIDTH = 2.0
FAINT, DOT_OPACITY = 0.55, 0.45
"""Opacity of context, and of the dot of a process."""


def draw_mark(
    sheet: Sheet,
    axes: Axes,
    scale: Scale,
    mark: Mark,
    at: float,
    *,
    is_vertical: bool = False,
    is_faint: bool = False,
    has_halo: bool = False,
) -> None:
    """Draw an estimate with its interval, unless the scale has no place for it.

    Args:
      at: The place on the other axis.
      is_vertical: Whether the scale is that of the y axis.
      has_halo: Whether an edge separates it from what it covers.
    """
    estimate, colour = mark.estimate, sheet.find_colour(mark.hue, FAINT if is_faint else 1.0)
    if not scale.shows(estimate.value):
        return
    bounds = [one for one in (estimate.low, estimate.high) if one is not None and scale.shows(one)]
    if len(bounds) == 2:
        ends = ((at, at), bounds) if is_vertical else (bounds, (at, at))
        (line,) = axes.plot(*ends, color=colour, linewidth=INTERVAL_WIDTH, clip_on=False, zorder=2.5)
        line.set(solid_capstyle="butt", gid="interval")
    size = REFERENCE_SIZE if mark.is_reference else SMALL_SIZE if is_faint and is_vertical else SIZE
    axes.plot(
        *(([at], [estimate.value]) if is_vertical else ([estimate.value], [at])),
        linestyle="none",
        marker=REFERENCE if mark.is_reference else SHAPES[mark.hue],
        markersize=size,
        markeredgewidth=1.5,
        markerfacecolor=sheet.background if estimate.is_doubtful else colour,
        markeredgecolor=sheet.background if has_halo and not estimate.is_doubtful else colour,
        clip_on=False,
        zorder=3,
        gid="reference" if mark.is_reference else "mark",
    )


def draw_limit(sheet: Sheet, axes: Axes, scale: Scale, limit: Limit, *, which: Literal["x", "y"] = "x") -> None:
    """Draw the dashed line of a limit, unless the scale has no place for it."""
    if scale.shows(limit.value):
        draw_line = axes.axvline if which == "x" else axes.axhline
        line = draw_line(limit.value, color=sheet.find_colour("limit"), linewidth=1, linestyle=(0, (4, 3)))
        line.set(zorder=1.5, clip_on=False, gid="limit")


def list_values(marks: Iterable[Mark]) -> Iterator[float]:
    """Yield all numbers that an axis has to show."""
    for mark in marks:
        estimate = mark.estimate
        yield from (one for one in (estimate.value, estimate.low, estimate.high) if one is not None)
        yield from estimate.dots


def list_entries(marks: Collection[Mark], hues: Collection[Hue] = ()) -> Iterator[Entry]:
    """Yield what a key has to explain: devices or directions, intervals, and hollow marks.

    Args:
      hues: Those of other things than marks.
    """
    used = {mark.hue for mark in marks} | set(hues)
    yield from (Entry(sign, hue, WORDS[hue]) for hue, sign in SIGNS.items() if hue in used)
    if any(mark.estimate.low is not None and mark.estimate.high is not None for mark in marks):
        yield Entry("━", "note", "confidence interval")
    if any(mark.estimate.is_doubtful for mark in marks):
        yield Entry("○", "ink", "hollow: unreliable")
