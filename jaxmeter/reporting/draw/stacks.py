"""Stacks: what some things are made of, as parts from 0 on."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from .. import numbers
from ..view.figure_model import Fill, Part, StackRow, Stacks
from .axis import BELOW, draw_limit, draw_x_axis
from .canvas import Canvas
from .marks import draw_mark, list_numbers
from .scale import Scale, fit_scale
from .text import measure_text

STEP, BAR = 22, 16
LABEL_SHARE, TOTAL_SHARE = 0.40, 0.40
"""The most of the width that labels and totals take."""

GAP, EDGE = 8, 16
KEY, KEY_GAP = 9, 12
"""Size of a legend's key, and pixels between two entries."""

LEGEND_LINE = 16
LEDGER = (Fill.DEVICE, Fill.TRANSFER, Fill.DISPATCH, Fill.HOST, Fill.IDLE)
SIGNS = {"cpu": "●", "gpu": "■", "tpu": "◆"}


def draw_stacks(figure: Stacks, width: int) -> Markup:
    """Return the SVG of a figure."""
    several = len({row.hue for row in figure.rows}) > 1
    names = [
        f"{SIGNS[row.hue.value]} {row.label}" if several and row.hue.value in SIGNS else row.label
        for row in figure.rows
    ]
    labels = min(max(map(measure_text, names), default=0.0), LABEL_SHARE * width)
    total = min(max((measure_text(row.total) for row in figure.rows), default=0.0), TOTAL_SHARE * width)
    left, right = labels + GAP, width - (total + GAP if total else EDGE)
    legend = _place_legend(width, left) if figure.has_legend else []
    top = 4 + (14 if figure.limit is not None else 0) + (LEGEND_LINE * (legend[-1][2] + 1) if legend else 0)
    bottom = top + STEP * len(figure.rows)
    canvas = Canvas(width, bottom + BELOW, figure.alt)
    scale = fit_scale(figure.axis, _list_values(figure), left, max(right - 4, left + 40))
    _draw_legend(canvas, legend)
    draw_x_axis(canvas, scale, top, bottom, figure.axis.title)
    for number, (row, name) in enumerate(zip(figure.rows, names, strict=True)):
        y = top + STEP * number + (STEP - BAR) / 2
        canvas.text(
            left - GAP,
            y + BAR / 2 + 4,
            name,
            f"label {row.hue.value}" if several else "label",
            anchor="end",
            room=labels,
        )
        canvas.text(width, y + BAR / 2 + 4, row.total, "label", anchor="end", room=total)
        _draw_row(canvas, row, scale, y)
    if figure.limit is not None and scale.shows(figure.limit.value):
        draw_limit(canvas, scale(figure.limit.value), top, bottom, figure.limit.text)
    return canvas.render()


def _draw_row(canvas: Canvas, row: StackRow, scale: Scale, y: float) -> None:
    amount = 0.0
    for part in _list_shown(row):
        start, end = scale(amount), scale(amount + part.amount)
        amount += part.amount
        with canvas.group("m", title=part.says):
            size = max(end - start - 1, 0.5)
            canvas.add("rect", part.fill.value, x=start, y=y, width=size, height=BAR)
            if part.name and measure_text(part.name) + 6 <= size:
                canvas.text(start + 4, y + BAR / 2 + 4, part.name, f"on-{part.fill.value}")
    if row.mark is not None:
        draw_mark(canvas, row.mark, scale, y + BAR / 2)


def _place_legend(width: float, left: float) -> list[tuple[Fill, float, int]]:
    """Return where the parts of a ledger stand, (part, x, line), above the plot if one line is enough."""
    sizes = [KEY + 4 + measure_text(fill.value) + KEY_GAP for fill in LEDGER]
    start = max(0.0, min(left, width - sum(sizes)))
    x, line, places = start, 0, []
    for fill, size in zip(LEDGER, sizes, strict=True):
        if x > start and x + size - KEY_GAP > width:
            x, line = 0.0, line + 1
        places.append((fill, x, line))
        x += size
    return places


def _draw_legend(canvas: Canvas, places: list[tuple[Fill, float, int]]) -> None:
    for fill, x, line in places:
        canvas.add("rect", fill.value, x=x, y=4 + line * LEGEND_LINE, width=KEY, height=KEY)
        canvas.text(x + KEY + 4, 12 + line * LEGEND_LINE, fill.value, "label")


def _list_shown(row: StackRow) -> list[Part]:
    """Return the parts that have a size."""
    return [part for part in row.parts if (numbers.usable(part.amount) or 0) > 0]


def _list_values(figure: Stacks) -> Iterator[float]:
    for row in figure.rows:
        yield sum(part.amount for part in _list_shown(row))
        if row.mark is not None:
            yield from list_numbers(row.mark)
    if figure.limit is not None:
        yield figure.limit.value
