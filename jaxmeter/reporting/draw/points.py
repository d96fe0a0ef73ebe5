"""Points: a row for each thing, its label at the left, its marks on one axis, a number at the right."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from markupsafe import Markup

from ..view.figure_model import PointRow, Points
from .axis import BELOW, draw_limit, draw_x_axis
from .canvas import Canvas
from .marks import draw_mark, list_numbers
from .rows import place_rows
from .scale import Scale, fit_scale
from .spread import spread
from .text import measure_text

STEP, STEP_WITH_DOTS = 20, 28
"""Pixels between two rows."""

HEAD, EDGE = 18, 4
"""Pixels above the rows, with and without names or a limit there."""

NEAR, APART, REACH = 9.0, 8.0, 16.0
"""Marks of a row nearer than NEAR pixels are drawn APART, one below the other; all of a row within REACH."""

NAME_AIR = 8
"""Pixels between the names of two marks."""


def draw_points(figure: Points, width: int) -> Markup:
    """Return the SVG of a figure."""
    has_head = any(figure.mark_names) or bool(figure.note_title) or figure.limit is not None
    has_dots = any(mark.estimate.dots for row in figure.rows for mark in row.marks)
    labels, notes = [row.label for row in figure.rows], [figure.note_title, *(row.note for row in figure.rows)]
    rows = place_rows(width, HEAD if has_head else EDGE, STEP_WITH_DOTS if has_dots else STEP, labels, notes)
    bottom = rows.top + rows.step * len(figure.rows)
    canvas = Canvas(width, bottom + BELOW, figure.alt)
    scale = fit_scale(figure.axis, _list_values(figure), rows.left + 6, rows.right - 6)
    if figure.note_title:
        canvas.text(width, 12, figure.note_title, "note", anchor="end", room=rows.notes)
    draw_x_axis(canvas, scale, rows.top, bottom, figure.axis.title)
    if figure.limit is not None and scale.shows(figure.limit.value):
        draw_limit(canvas, scale(figure.limit.value), rows.top, bottom, figure.limit.text)
    if figure.rows:
        _write_mark_names(canvas, figure, scale)
    for number, row in enumerate(figure.rows):
        context = " ctx" if row.is_context else ""
        canvas.line(rows.left, rows.find_line(number), rows.right, rows.find_line(number), "grid")
        rows.write(canvas, number, (row.label, f"label{context}"), (row.note, f"label{context}"))
        with canvas.group(f"row{context}"):
            _draw_marks(canvas, row, scale, rows.find_line(number))
    return canvas.render()


def _draw_marks(canvas: Canvas, row: PointRow, scale: Scale, y: float) -> None:
    shown = [mark for mark in row.marks if scale.shows(mark.estimate.value)]
    places = [scale(mark.estimate.value) for mark in shown]
    for reference, end in zip(shown, places, strict=True):
        for mark, at in zip(shown, places, strict=True):
            if reference.is_reference and not mark.is_reference and mark.hue is reference.hue:
                canvas.line(at, y, end, y, f"ctx {mark.hue.value}")
    # A reference is a bar, which a shape does not hide.
    shapes = [at for mark, at in zip(shown, places, strict=True) if not mark.is_reference]
    is_near = any(b - a < NEAR for a, b in itertools.pairwise(sorted(shapes)))
    step = min(APART, REACH / max(len(shapes) - 1, 1)) if is_near else 0.0
    above = step * (len(shapes) - 1) / 2
    for mark in shown:
        draw_mark(canvas, mark, scale, y if mark.is_reference else y - above)
        above -= 0.0 if mark.is_reference else step


def _write_mark_names(canvas: Canvas, figure: Points, scale: Scale) -> None:
    """Write names above the marks of the first row, pushed apart."""
    marks = [mark for mark in figure.rows[0].marks if scale.shows(mark.estimate.value)]
    names = [figure.mark_names[mark.is_reference] for mark in marks]
    widest = max((measure_text(name, is_bold=True) for name in names), default=0.0)
    wanted = [scale(mark.estimate.value) for mark in marks]
    places = spread(wanted, widest + NAME_AIR, widest / 2, canvas.width - widest / 2)
    for name, at in zip(names, places, strict=True):
        canvas.text(at, 12, name, "label b", anchor="middle")


def _list_values(figure: Points) -> Iterator[float]:
    for row in figure.rows:
        for mark in row.marks:
            yield from list_numbers(mark)
    if figure.limit is not None:
        yield figure.limit.value
