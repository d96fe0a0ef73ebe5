"""Points: few numbers side by side, a row each."""

from __future__ import annotations

from matplotlib.figure import Figure as Canvas

from jaxmeter.reporting.draw.scale import fit_scale
from jaxmeter.reporting.draw.spread import spread
from jaxmeter.reporting.draw.text import measure_text
from jaxmeter.reporting.view.figure_model import Hue, PointRow, Points

from .marks import DOT_OPACITY, DOT_SIZE, FAINT, draw_mark, list_entries, list_values
from .rows import HEIGHT, MOST_LABEL, MOST_NOTE, WIDTH, Rows, open_rows, place_axis
from .sheet import GAP, LINE, MARGIN, Theme, arrange_key, fit_text

HEIGHT_WITH_DOTS = 32.0
DOTS_BELOW = 9.0
"""How far below a mark the dots of its processes are."""


def draw_points(figure: Points, theme: Theme) -> Canvas:
    """Draw a mark for each number, with the dots of its processes below it."""
    marks = [mark for row in figure.rows for mark in row.marks]
    labels = [row.label for row in figure.rows]
    values = [*list_values(marks), *([] if figure.limit is None else [figure.limit.value])]
    has_dots = any(mark.estimate.dots for mark in marks)
    rows = open_rows(
        theme,
        figure.axis,
        fit_scale(figure.axis, values, *place_axis(labels, [figure.note_title, *(row.note for row in figure.rows)])),
        labels,
        arrange_key(list_entries(marks), WIDTH),
        heads=bool(figure.note_title or any(figure.mark_names)) + (figure.limit is not None),
        height=HEIGHT_WITH_DOTS if has_dots else HEIGHT,
    )
    for place, row in enumerate(figure.rows):
        # Mark and dots together are in the middle of the row.
        _draw_row(rows, row, place - (DOTS_BELOW / 2 / rows.height if has_dots else 0.0))
        colour = "note" if row.is_context else "label"
        rows.write_note(place, row.note, colour)
        rows.colour_label(place, colour)
    rows.sheet.write(rows.scale.end + GAP, MARGIN + LINE / 2, fit_text(figure.note_title, MOST_NOTE), "title")
    _write_mark_names(rows, figure)
    rows.draw_limit(figure.limit)
    return rows.sheet.canvas


def _draw_row(rows: Rows, row: PointRow, y: float) -> None:
    by_hue: dict[Hue, list[float]] = {}
    for mark in row.marks:
        if rows.scale.shows(mark.estimate.value):
            by_hue.setdefault(mark.hue, []).append(mark.estimate.value)
    for hue, values in by_hue.items():
        if len(values) > 1:
            colour = rows.sheet.find_colour(hue, FAINT)
            rows.axes.plot((min(values), max(values)), (y, y), color=colour, linewidth=1, gid="connection")
    # The reference first, so that its bar never hides what is compared with it.
    for mark in sorted(row.marks, key=lambda one: not one.is_reference):
        draw_mark(rows.sheet, rows.axes, rows.scale, mark, y, is_faint=row.is_context)
        dots = [value for value in mark.estimate.dots if rows.scale.shows(value)]
        if dots:
            rows.axes.plot(
                dots,
                [y + DOTS_BELOW / rows.height] * len(dots),
                "o",
                color=rows.sheet.find_colour(mark.hue),
                markersize=DOT_SIZE,
                markeredgewidth=0,
                alpha=DOT_OPACITY,
                clip_on=False,
                gid="dots",
            )


def _write_mark_names(rows: Rows, figure: Points) -> None:
    """Write a name above the first mark of either kind; the two are pushed apart."""
    found = []
    for is_reference, name in enumerate(figure.mark_names):
        values = [mark.estimate.value for row in figure.rows for mark in row.marks if mark.is_reference == is_reference]
        place = next((rows.scale(value) for value in values if rows.scale.shows(value)), None)
        if name and place is not None:
            found.append((place, fit_text(name, MOST_LABEL / 2, is_bold=True)))
    apart = sum(measure_text(name, is_bold=True) for _, name in found) / 2 + GAP
    places = spread([place for place, _ in found], apart, rows.scale.start, rows.scale.end)
    for place, (_, name) in zip(places, found, strict=True):
        rows.sheet.write(place, MARGIN + LINE / 2, name, "label", align="center", is_bold=True)
