"""Curves: panels side by side, each a number over a size, with the names of the curves at their last marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from jaxmeter.reporting.draw.scale import Scale, fit_scale, fit_sizes
from jaxmeter.reporting.draw.spread import spread
from jaxmeter.reporting.draw.text import measure_text
from jaxmeter.reporting.view.figure_model import Curve, CurvePanel, CurvePoint, Curves, Ending

from .marks import FAINT, draw_limit, draw_mark, list_entries, list_values
from .sheet import GAP, LINE, MARGIN, Sheet, Theme, arrange_key, fit_text, measure_widest

PANEL_WIDTH, PLOT_HEIGHT = 330.0, 190.0

MOST_NAME, MOST_ENDING = 125.0, 65.0
"""Room of a curve's name, and of why it ends; longer ones are shortened."""

LEAST_SIDE = 24.0
"""Room right of the axis: half the text of its last tick."""

APART = 13.0
"""Between the names of two curves, or the labels of two limits."""

MOST_TICK = 90.0
"""Room of a tick's text at the left."""

LIMIT_GAP = 9.0
"""Between the line of a limit and the middle of its label."""

HERE_WIDTH = 14.0
"""Of the band at the size to look at."""


def draw_curves(figure: Curves, theme: Theme) -> Canvas:
    """Draw a panel next to the other."""
    marks = [point.mark for panel in figure.panels for curve in panel.curves for point in curve.points]
    width = PANEL_WIDTH * max(len(figure.panels), 1)
    key = arrange_key(list_entries(marks), width)
    has_titles, has_limits = (any(getattr(panel, name) for panel in figure.panels) for name in ("title", "limits"))
    top = MARGIN + (1 + has_titles + has_limits) * LINE + GAP
    bottom = top + PLOT_HEIGHT
    sheet = Sheet(width, bottom + (2 + len(key)) * LINE + MARGIN, theme)
    for place, panel in enumerate(figure.panels):
        _draw_panel(sheet, panel, place * PANEL_WIDTH, top, bottom, has_titles=has_titles)
    sheet.write_key(key, bottom + 2 * LINE)
    return sheet.canvas


def _draw_panel(sheet: Sheet, panel: CurvePanel, left: float, top: float, bottom: float, *, has_titles: bool) -> None:
    """Draw a panel, whose plot is from `top` to `bottom`, and its texts around.

    Args:
      has_titles: Whether any panel of the figure has a title.
    """
    points = [point for curve in panel.curves for point in curve.points]
    values = [*list_values(point.mark for point in points), *(limit.value for limit in panel.limits)]
    y = fit_scale(panel.y, values, bottom, top, is_vertical=True)
    start = left + MARGIN + measure_widest([tick.text for tick in y.ticks], MOST_TICK) + GAP
    x = _fit_sizes(panel, start, left + PANEL_WIDTH - MARGIN)
    axes = sheet.open_axes(x.start, top, x.end, bottom)
    sheet.set_scale(axes, x, "x")
    sheet.set_scale(axes, y, "y")
    if panel.here is not None and x.shows(panel.here):
        axes.axvline(panel.here, color=sheet.find_colour("here"), linewidth=HERE_WIDTH, zorder=0.4, gid="here")
    for curve in sorted(panel.curves, key=lambda one: one.in_focus):
        shown = [point for point in curve.points if _shows(x, y, point)]
        if shown:
            width, opacity = (2.0, 1.0) if curve.in_focus else (1.5, FAINT)
            colour = sheet.find_colour(shown[-1].mark.hue, opacity)
            places = [point.x for point in shown], [point.mark.estimate.value for point in shown]
            axes.plot(*places, color=colour, linewidth=width, clip_on=False, zorder=2, gid="curve")
        for point in shown:
            draw_mark(sheet, axes, y, point.mark, point.x, is_vertical=True, is_faint=not curve.in_focus)
    room = PANEL_WIDTH - 2 * MARGIN
    sheet.write(left + MARGIN, MARGIN + LINE / 2, fit_text(panel.title, room, is_bold=True), "label", is_bold=True)
    y_title = MARGIN + (1.5 if has_titles else 0.5) * LINE
    sheet.write_titles(panel.x.title, panel.y.title, left + MARGIN, y_title, x.end, bottom + 1.5 * LINE)
    _draw_limits(sheet, panel, axes, x, y, left + PANEL_WIDTH - MARGIN)
    _write_names(sheet, panel.curves, x, y, left + PANEL_WIDTH)


def _fit_sizes(panel: CurvePanel, start: float, end: float) -> Scale:
    """Return the scale of the sizes that leaves room for the names right of the last marks."""
    sizes = [size for curve in panel.curves for size in curve.sizes] + ([] if panel.here is None else [panel.here])
    widest = fit_sizes(panel.x, sizes, start, end)
    labels = [_Label.of(curve) for curve in panel.curves]
    over = [
        widest(curve.points[-1].x) + GAP + label.width - end
        for curve, label in zip(panel.curves, labels, strict=True)
        if curve.points and widest.shows(curve.points[-1].x)
    ]
    return fit_sizes(panel.x, sizes, start, end - max([LEAST_SIDE, *over]))


def _draw_limits(sheet: Sheet, panel: CurvePanel, axes: Axes, x: Scale, y: Scale, right: float) -> None:
    """Draw the dashed lines of limits, each labelled above its right end or, if long, beyond it."""
    shown = [limit for limit in panel.limits if y.shows(limit.value)]
    places = spread([y(limit.value) - LIMIT_GAP for limit in shown], APART, -math.inf, math.inf)
    for limit, place in zip(shown, places, strict=True):
        draw_limit(sheet, axes, y, limit, which="y")
        text = fit_text(limit.text, right - x.start)
        sheet.write(max(x.end, x.start + measure_text(text)), place, text, "limit", align="right", has_halo=True)


@dataclass(frozen=True)
class _Label:
    """A curve's name."""

    name: str
    is_bold: bool

    @classmethod
    def of(cls, curve: Curve) -> _Label:
        """Return the label of a curve, shortened to its room."""
        return cls(fit_text(curve.name, MOST_NAME, is_bold=curve.in_focus), curve.in_focus)

    @property
    def width(self) -> float:
        """How much room the name takes."""
        return measure_text(self.name, is_bold=self.is_bold)


def _write_names(sheet: Sheet, curves: Sequence[Curve], x: Scale, y: Scale, right: float) -> None:
    """Write each curve's name at its last mark; names that would cover one another are pushed apart."""
    labels = [
        (x(last.x) + GAP, y(last.mark.estimate.value), _Label.of(curve), last, curve.ending)
        for curve in curves
        if (last := next((one for one in reversed(curve.points) if _shows(x, y, one)), None)) is not None
    ]
    labels.sort(key=lambda one: one[0])
    # A column holds names that others of it reach sideways; only these can cover one another.
    columns: list[list[tuple[float, float, _Label, CurvePoint, Ending | None]]] = []
    reached = -math.inf
    for entry in labels:
        if entry[0] > reached:
            columns.append([])
        columns[-1].append(entry)
        reached = max(reached, entry[0] + entry[2].width)
    for column in columns:
        places = spread([entry[1] for entry in column], APART, y.end, y.start)
        for place, (wanted, _, label, last, ending) in zip(places, column, strict=True):
            # Without enough room at its right, as after many sizes, a name is moved over its curve.
            at = min(wanted, right - label.width)
            colour = last.mark.hue if label.is_bold else "note"
            sheet.write(at, place, label.name, colour, is_bold=label.is_bold, has_halo=True)
            if ending is not None and x.shows(ending.x):
                _write_ending(sheet, ending, x, y, place, at + label.width)


def _write_ending(sheet: Sheet, ending: Ending, x: Scale, y: Scale, place: float, taken: float) -> None:
    """Write why a curve ends, at the size that has no number; above or below the curve's name where that is in the way.

    Args:
      place: The height of the name.
      taken: Where the name ends.
    """
    text = fit_text(ending.text, MOST_ENDING)
    if x(ending.x) - measure_text(text) / 2 < taken + GAP:
        place += APART if place - APART < y.end else -APART
    sheet.write(x(ending.x), place, text, "note", align="center", has_halo=True)


def _shows(x: Scale, y: Scale, point: CurvePoint) -> bool:
    return x.shows(point.x) and y.shows(point.mark.estimate.value)
