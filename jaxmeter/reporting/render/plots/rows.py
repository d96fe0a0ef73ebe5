"""Rows on one axis, as of points, stacks and forests: labels at the left, notes at the right, a key below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from jaxmeter.reporting.draw.scale import Scale
from jaxmeter.reporting.draw.text import measure_text
from jaxmeter.reporting.view.figure_model import Axis, Limit

from .marks import draw_limit
from .sheet import GAP, LINE, MARGIN, Entry, Sheet, Theme, fit_text, measure_widest

WIDTH = 576.0
"""8 inches: half a slide, or the width of a page."""

MOST_LABEL, MOST_NOTE = 210.0, 190.0
"""Room of a row's label and note; longer ones are shortened."""

LEAST_SIDE = 30.0
"""Room right of the axis: half the text of its last tick."""

HEIGHT = 24.0


@dataclass(frozen=True)
class Rows:
    """Axes whose y is the index of a row, from 0 at the top."""

    sheet: Sheet
    axes: Axes
    scale: Scale
    top: float
    height: float

    def find_y(self, row: float) -> float:
        """Return where on the sheet the middle of a row is."""
        return self.top + (row + 0.5) * self.height

    def write_note(self, row: int, text: str, colour: str) -> None:
        """Write a note at the right of a row."""
        self.sheet.write(self.scale.end + GAP, self.find_y(row), fit_text(text, MOST_NOTE), colour)

    def colour_label(self, row: int, colour: str) -> None:
        """Give a row's label another colour."""
        self.axes.get_yticklabels()[row].set_color(self.sheet.find_colour(colour))

    def draw_limit(self, limit: Limit | None) -> None:
        """Draw the line of a limit, and its label right above the rows."""
        if limit is not None and self.scale.shows(limit.value):
            draw_limit(self.sheet, self.axes, self.scale, limit)
            self.sheet.write(
                self.scale(limit.value), self.top - LINE / 2, fit_text(limit.text), "limit", align="center"
            )


def place_axis(labels: Sequence[str], notes: Sequence[str]) -> tuple[float, float]:
    """Return where the axis begins and ends, between the labels and notes of all rows."""
    left = MARGIN + measure_widest(labels, MOST_LABEL) + GAP
    right = MARGIN + max(measure_widest(notes, MOST_NOTE) + GAP, LEAST_SIDE)
    return left, WIDTH - right


def open_rows(
    theme: Theme,
    axis: Axis,
    scale: Scale,
    labels: Sequence[str],
    key: Sequence[Sequence[Entry]],
    *,
    heads: int = 0,
    height: float = HEIGHT,
) -> Rows:
    """Open a sheet with axes from the start of the scale to its end.

    Args:
      heads: Lines above the rows, for labels.
    """
    count = max(len(labels), 1)
    top = MARGIN + heads * LINE
    bottom = top + count * height
    sheet = Sheet(WIDTH, bottom + (2 + len(key)) * LINE + MARGIN, theme)
    axes = sheet.open_axes(scale.start, top, scale.end, bottom)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks(range(len(labels)), [fit_text(label, MOST_LABEL) for label in labels])
    axes.tick_params(axis="y", labelcolor=sheet.find_colour("label"))
    sheet.set_scale(axes, scale, "x")
    title = fit_text(axis.title, WIDTH - 2 * MARGIN)
    sheet.write(max(scale.end, MARGIN + measure_text(title)), bottom + 1.5 * LINE, title, "title", align="right")
    sheet.write_key(key, bottom + 2 * LINE)
    return Rows(sheet, axes, scale, top, height)
