"""Points: a row for each thing, its label at the left, its marks on one axis, a number at the right."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from markupsafe import Markup

from ..view.page_model import Hue, PointRow, Points
from .canvas import Canvas
from .rows import draw_mark, draw_shape, list_numbers, place_rows, sign_labels
from .scale import BELOW, Scale, draw_x_axis, fit_scale, name_limit

STEP, STEP_WITH_DOTS = 20, 28
"""Pixels between two rows."""

HEAD, EDGE = 18, 4
"""Pixels above the rows, with and without names or a limit there."""

NEAR, APART, REACH = 9.0, 8.0, 16.0
"""Marks of a row nearer than NEAR pixels are drawn APART, one below the other; all of a row within REACH."""

KEY, NAME_AIR = 4.0, 10
"""Radius of a mark in the legend, and pixels between two entries."""


def draw_points(figure: Points, width: int) -> Markup:
    """Return the SVG of a figure."""
    has_head = any(figure.mark_names) or bool(figure.note_title) or figure.limit is not None
    has_dots = any(mark.estimate.dots for row in figure.rows for mark in row.marks)
    labels = sign_labels([(row.label, _find_hue(row)) for row in figure.rows])
    notes = [figure.note_title, *(row.note for row in figure.rows)]
    step = STEP_WITH_DOTS if has_dots else STEP
    rows = place_rows(width, HEAD if has_head else EDGE, step, [label for label, _ in labels], notes)
    bottom = rows.top + rows.step * len(figure.rows)
    canvas = Canvas(width, bottom + BELOW, figure.alt)
    scale = fit_scale(figure.axis, _list_values(figure), rows.left + 6, rows.right - 6)
    draw_x_axis(canvas, scale, rows.top, bottom, figure.axis.title)
    if figure.limit is not None and scale.shows(figure.limit.value):
        rows.draw_line(canvas, scale(figure.limit.value), len(figure.rows))
        name_limit(canvas, scale(figure.limit.value), rows.top, figure.limit.text)
    if figure.note_title:
        canvas.text(width, 12, figure.note_title, "note", anchor="end", room=rows.notes)
    if figure.rows:
        _write_mark_names(canvas, figure, rows.left if not rows.has_lines else 0.0)
    canvas.grid(map(rows.find_line, range(len(figure.rows))), rows.left, rows.right, is_vertical=False)
    for number, (row, (label, classes)) in enumerate(zip(figure.rows, labels, strict=True)):
        context = " ctx" if row.is_context else ""
        rows.write(canvas, number, (label, f"{classes}{context}"), (row.note, f"label{context}"), case=row.case)
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


def _find_hue(row: PointRow) -> Hue:
    return next((mark.hue for mark in row.marks), Hue.INK)


def _write_mark_names(canvas: Canvas, figure: Points, left: float) -> None:
    """Write a legend above the rows: the shape of a mark, the bar of a reference, and what each is."""
    hue = next((mark.hue for row in figure.rows for mark in row.marks if mark.hue is not Hue.INK), Hue.INK)
    for is_reference, name in enumerate(figure.mark_names):
        if not name:
            continue
        box = canvas.text(left + 2 * KEY + 4, 12, name, "label b")
        if box is None:
            return
        with canvas.group(hue.value):
            if is_reference:
                canvas.line(left + KEY, 2, left + KEY, 14, stroke_width=2)
            else:
                draw_shape(canvas, hue, left + KEY, 8, KEY)
        left = box.right + NAME_AIR


def _list_values(figure: Points) -> Iterator[float]:
    for row in figure.rows:
        for mark in row.marks:
            yield from list_numbers(mark)
    if figure.limit is not None:
        yield figure.limit.value
