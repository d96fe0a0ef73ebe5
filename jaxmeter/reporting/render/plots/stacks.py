"""Stacks: what each of some things is made of, on one linear axis."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure as Canvas

from jaxmeter.reporting import numbers
from jaxmeter.reporting.draw.scale import Scale, fit_scale
from jaxmeter.reporting.draw.text import measure_text
from jaxmeter.reporting.view.figure_model import Fill, Part, StackRow, Stacks

from .marks import SIGNS, draw_mark, list_entries, list_values
from .rows import MOST_LABEL, MOST_NOTE, WIDTH, Rows, open_rows, place_axis
from .sheet import GAP, MARGIN, Entry, Theme, arrange_key, fit_text

THICKNESS = 0.7
"""Of a stack, relative to its row."""

INSIDE = 5.0
"""Between the edge of a part and its name."""


@dataclass(frozen=True)
class _Piece:
    """A part, and where it begins and ends."""

    part: Part
    low: float
    high: float

    def name_on(self, scale: Scale) -> str:
        """Return its name; empty where it has no room for that."""
        name = fit_text(self.part.name, MOST_LABEL)
        has_room = measure_text(name) + 2 * INSIDE <= scale(self.high) - scale(self.low)
        return name if has_room else ""


def draw_stacks(figure: Stacks, theme: Theme) -> Canvas:
    """Draw a bar for each row, with names inside its parts; a key above the rows explains what has no name there."""
    axis = dataclasses.replace(figure.axis, is_log=False)
    stacks = [list(_pile(row.parts)) for row in figure.rows]
    marks = [row.mark for row in figure.rows if row.mark is not None]
    ends = [piece.high for stack in stacks for piece in stack]
    values = [*ends, *list_values(marks), *([] if figure.limit is None else [figure.limit.value])]
    labels = [f"{SIGNS[row.hue]} {row.label}" if row.hue in SIGNS else row.label for row in figure.rows]
    scale = fit_scale(axis, values, *place_axis(labels, [row.total for row in figure.rows]))
    legend = arrange_key(_list_fills(figure, [piece for stack in stacks for piece in stack], scale), WIDTH)
    key = arrange_key(list_entries(marks, {row.hue for row in figure.rows}), WIDTH)
    rows = open_rows(theme, axis, scale, labels, key, heads=len(legend) + (figure.limit is not None))
    rows.sheet.write_key(legend, MARGIN)
    for place, (row, stack) in enumerate(zip(figure.rows, stacks, strict=True)):
        _draw_row(rows, row, stack, place)
        rows.colour_label(place, row.hue)
    rows.draw_limit(figure.limit)
    return rows.sheet.canvas


def _draw_row(rows: Rows, row: StackRow, stack: Sequence[_Piece], place: int) -> None:
    sheet, y = rows.sheet, rows.find_y(place)
    for piece in stack:
        fill = piece.part.fill
        look: dict[str, Any] = {"color": sheet.find_colour(fill), "edgecolor": sheet.background, "linewidth": 1}
        rows.axes.barh(place, piece.high - piece.low, THICKNESS, piece.low, **look)
        sheet.write(rows.scale(piece.low) + INSIDE, y, piece.name_on(rows.scale), f"on-{fill}")
    reached = [0.0, *(piece.high for piece in stack)]
    if row.mark is not None:
        draw_mark(sheet, rows.axes, rows.scale, row.mark, place, has_halo=True)
        reached += [value for value in list_values([row.mark]) if rows.scale.shows(value)]
    total = fit_text(row.total, MOST_NOTE)
    sheet.write(rows.scale(max(reached)) + GAP, y, total, "label", has_halo=True)


def _pile(parts: Iterable[Part]) -> Iterator[_Piece]:
    """Yield the parts that can be drawn, each from the end of the one before."""
    shown = [part for part in parts if (numbers.usable(part.amount) or 0.0) > 0]
    edges = itertools.accumulate((part.amount for part in shown), initial=0.0)
    for part, (low, high) in zip(shown, itertools.pairwise(edges), strict=True):
        yield _Piece(part, low, high)


def _list_fills(figure: Stacks, pieces: Sequence[_Piece], scale: Scale) -> Iterator[Entry]:
    """Yield what the fills are: all of them, or without a legend those whose names have room in no row."""
    inside = {piece.part.name for piece in pieces if piece.name_on(scale)}
    for fill in Fill:
        names = [piece.part.name for piece in pieces if piece.part.fill == fill]
        if figure.has_legend:
            yield from [Entry("■", fill, fill)] if names else []
        else:
            yield from (Entry("■", fill, name) for name in dict.fromkeys(names) if name and name not in inside)
