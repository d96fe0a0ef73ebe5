"""Rows of marks: labels at the left and numbers at the right, or both above the marks where there is no room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..view.figure_model import DEVICE_SIGNS, Hue
from .canvas import Canvas
from .text import measure_text

GAP, EDGE = 8, 14
"""Pixels between a label and the plot, and right of a plot without numbers."""

LABEL_SHARE, NOTE_SHARE = 0.45, 0.36
"""The most of the width that labels and numbers take next to the plot."""

LEAST_PLOT = 84
"""Pixels of a plot that show an interval; with less, labels and numbers go above the marks."""

LINE = 14
"""Pixels of a line of text above marks."""

HALF = 9.0
"""Half the height of a vertical line at a row's marks."""


def sign_labels(labels: Sequence[tuple[str, Hue]]) -> list[tuple[str, str]]:
    """Return the labels of rows and their classes; with several devices each has the sign and the colour of its own."""
    several = len({hue for _, hue in labels}) > 1
    return [
        (f"{DEVICE_SIGNS[hue]} {label}", f"label {hue.value}") if several and hue in DEVICE_SIGNS else (label, "label")
        for label, hue in labels
    ]


@dataclass(frozen=True)
class Rows:
    """Places of rows.

    Args:
      left, right: Where the plot begins and ends.
      notes: Pixels of the widest number.
      step: Pixels between two rows.
      labels: Of all rows.
      has_lines: Whether labels and numbers stand above the marks.
    """

    left: float
    right: float
    notes: float
    top: float
    step: float
    labels: tuple[str, ...]
    has_lines: bool

    def find_line(self, number: int) -> float:
        """Return the y of a row's marks."""
        return self.top + self.step * number + 10 + (LINE if self.has_lines else 0)

    def write(
        self, canvas: Canvas, number: int, label: tuple[str, str], note: tuple[str, str], *, case: str = ""
    ) -> None:
        """Write the label and the number of a row, each given as (text, classes).

        Args:
          case: Fragment of the case that a click on the label opens.
        """
        y = self.find_line(number) + 4
        if not self.has_lines:
            canvas.text(self.left - GAP, y, *label, anchor="end", among=self.labels, case=case)
            canvas.text(canvas.width, y, *note, anchor="end", room=self.notes)
            return
        y -= LINE + 1
        box = canvas.text(canvas.width, y, note[0], f"direct {note[1]}", anchor="end", room=0.7 * canvas.width)
        room = (box.left if box else canvas.width) - GAP
        canvas.text(0, y, label[0], f"direct {label[1]}", room=room, among=self.labels, case=case)

    def draw_line(self, canvas: Canvas, x: float, count: int) -> None:
        """Draw a dashed vertical line at the marks of the first rows, not through texts above them."""
        if not self.has_lines:
            canvas.line(x, self.top, x, self.top + self.step * count, "limit")
            return
        for number in range(count):
            y = self.find_line(number)
            canvas.line(x, y - HALF, x, y + HALF, "limit")


def place_rows(width: float, top: float, step: float, labels: Sequence[str], notes: Sequence[str]) -> Rows:
    """Return rows with labels and numbers next to the plot, or above the marks where the plot would be too narrow."""
    wanted, widest = (max(map(measure_text, texts), default=0.0) for texts in (labels, notes))
    is_cut = wanted > LABEL_SHARE * width or widest > NOTE_SHARE * width
    label, note = min(wanted, LABEL_SHARE * width), min(widest, NOTE_SHARE * width)
    left, right = label + GAP, width - (note + GAP if note else EDGE)
    if right - left >= LEAST_PLOT and not is_cut:
        return Rows(left, right, note, top, step, tuple(labels), has_lines=False)
    return Rows(EDGE, width - EDGE, widest, top, step + LINE, tuple(labels), has_lines=True)
