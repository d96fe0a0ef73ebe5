"""Forest: confirmed changes around the line of no change."""

from __future__ import annotations

from matplotlib.figure import Figure as Canvas

from jaxmeter.reporting.draw.scale import fit_changes
from jaxmeter.reporting.view.figure_model import Forest

from .marks import draw_mark, list_entries, list_values
from .rows import WIDTH, open_rows, place_axis
from .sheet import Theme, arrange_key


def draw_forest(figure: Forest, theme: Theme) -> Canvas:
    """Draw a ratio with its interval for each change, and a solid line at 1."""
    marks = [row.mark for row in figure.rows]
    labels = [row.label for row in figure.rows]
    start, end = place_axis(labels, [row.note for row in figure.rows])
    scale = fit_changes(figure.axis, list_values(marks), start, end)
    rows = open_rows(theme, figure.axis, scale, labels, arrange_key(list_entries(marks), WIDTH))
    rows.axes.axvline(1.0, color=rows.sheet.find_colour("rule"), linewidth=1.5, zorder=1.5, gid="no change")
    for place, row in enumerate(figure.rows):
        draw_mark(rows.sheet, rows.axes, scale, row.mark, place)
        rows.write_note(place, row.note, row.mark.hue)
    return rows.sheet.canvas
