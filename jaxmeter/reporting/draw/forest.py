"""Forest: changes around the line of no change, a row each."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from ..view.figure_model import CHANGE_SIGNS, Forest
from .axis import BELOW, draw_x_axis
from .canvas import Canvas
from .marks import draw_mark, list_numbers
from .rows import place_rows
from .scale import fit_changes

TOP, STEP = 4, 20


def draw_forest(figure: Forest, width: int) -> Markup:
    """Return the SVG of a figure."""
    notes = [f"{CHANGE_SIGNS.get(row.mark.hue, '')} {row.note}".strip() for row in figure.rows]
    rows = place_rows(width, TOP, STEP, [row.label for row in figure.rows], notes)
    bottom = TOP + rows.step * len(figure.rows)
    canvas = Canvas(width, bottom + BELOW, figure.alt)
    scale = fit_changes(figure.axis, _list_values(figure), rows.left + 6, rows.right - 6)
    draw_x_axis(canvas, scale, TOP, bottom, figure.axis.title)
    rows.draw_line(canvas, scale(1.0), len(figure.rows))
    for number, (row, note) in enumerate(zip(figure.rows, notes, strict=True)):
        rows.write(canvas, number, (row.label, "label"), (note, row.mark.hue.value), case=row.mark.case)
        draw_mark(canvas, row.mark, scale, rows.find_line(number))
    return canvas.render()


def _list_values(figure: Forest) -> Iterator[float]:
    for row in figure.rows:
        yield from list_numbers(row.mark)
