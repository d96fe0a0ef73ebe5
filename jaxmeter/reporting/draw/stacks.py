"""Stacks: what some things are made of, as parts from 0 on."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from jaxmeter.document import numbers

from ..view.page_model import Fill, StackPart, StackRow, Stacks
from .canvas import Canvas, measure_text
from .rows import draw_mark, list_numbers, sign_labels
from .scale import BELOW, Scale, draw_limit, draw_x_axis, fit_scale

STEP, BAR = 22, 16
LABEL_SHARE, TOTAL_SHARE = 0.40, 0.40
"""The most of the width that labels and totals take."""

GAP, EDGE = 8, 16
KEY, KEY_GAP = 9, 12
"""Size of a legend's key, and pixels between two entries."""

LEGEND_LINE = 16
LEDGER = (Fill.DEVICE, Fill.TRANSFER, Fill.DISPATCH, Fill.HOST, Fill.IDLE)


def draw_stacks(figure: Stacks, width: int) -> Markup:
    """Return the SVG of a figure."""
    names = sign_labels([(row.label, row.hue) for row in figure.rows])
    labels = min(max((measure_text(name) for name, _ in names), default=0.0), LABEL_SHARE * width)
    total = min(max((measure_text(row.total) for row in figure.rows), default=0.0), TOTAL_SHARE * width)
    left, right = labels + GAP, width - (total + GAP if total else EDGE)
    scale = fit_scale(figure.axis, _list_values(figure), left, max(right - 4, left + 40))
    legend = _place_legend(_list_entries(figure, scale), width, left)
    top = 4 + (14 if figure.limit is not None else 0) + (LEGEND_LINE * (legend[-1][3] + 1) if legend else 0)
    bottom = top + STEP * len(figure.rows)
    canvas = Canvas(width, bottom + BELOW, figure.alt)
    _draw_legend(canvas, legend)
    draw_x_axis(canvas, scale, top, bottom, figure.axis.title)
    for number, (row, name) in enumerate(zip(figure.rows, names, strict=True)):
        y = top + STEP * number + (STEP - BAR) / 2
        among = [label for label, _ in names]
        canvas.text(left - GAP, y + BAR / 2 + 4, *name, anchor="end", room=labels, among=among, case=row.case)
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
        with canvas.group("m", title=part.says, case=row.case):
            size = max(end - start - 1, 0.5)
            canvas.add("rect", part.fill.value, x=start, y=y, width=size, height=BAR)
            if part.name and _has_room(part, size):
                canvas.text(start + 4, y + BAR / 2 + 4, part.name, f"on-{part.fill.value}")
    if row.mark is not None:
        draw_mark(canvas, row.mark, scale, y + BAR / 2)


def _has_room(part: StackPart, size: float) -> bool:
    """Return whether the name of a part fits into so many pixels."""
    return measure_text(part.name) + 6 <= size


def _list_entries(figure: Stacks, scale: Scale) -> list[tuple[Fill, str]]:
    """Return what the legend names: all parts of a ledger, else all where one has no room for its name."""
    if figure.has_legend:
        return [(fill, fill.value) for fill in LEDGER]
    parts = [part for row in figure.rows for part in _list_shown(row) if part.name]
    if all(_has_room(part, scale(part.amount) - scale(0.0) - 1) for part in parts):
        return []
    entries = dict.fromkeys((part.fill, part.name) for part in parts)
    return sorted(entries, key=lambda entry: list(Fill).index(entry[0]))


def _place_legend(entries: list[tuple[Fill, str]], width: float, left: float) -> list[tuple[Fill, str, float, int]]:
    """Return where the entries of a legend are, (part, name, x, line), above the plot if one line is enough."""
    sizes = [KEY + 4 + measure_text(name) + KEY_GAP for _, name in entries]
    start = max(0.0, min(left, width - sum(sizes)))
    x, line, places = start, 0, []
    for (fill, name), size in zip(entries, sizes, strict=True):
        if x > start and x + size - KEY_GAP > width:
            x, line = 0.0, line + 1
        places.append((fill, name, x, line))
        x += size
    return places


def _draw_legend(canvas: Canvas, places: list[tuple[Fill, str, float, int]]) -> None:
    for fill, name, x, line in places:
        canvas.add("rect", fill.value, x=x, y=4 + line * LEGEND_LINE, width=KEY, height=KEY)
        canvas.text(x + KEY + 4, 12 + line * LEGEND_LINE, name, "label")


def _list_shown(row: StackRow) -> list[StackPart]:
    """Return the parts that have a size."""
    return [part for part in row.parts if (numbers.usable(part.amount) or 0) > 0]


def _list_values(figure: Stacks) -> Iterator[float]:
    for row in figure.rows:
        yield sum(part.amount for part in _list_shown(row))
        if row.mark is not None:
            yield from list_numbers(row.mark)
    if figure.limit is not None:
        yield figure.limit.value
