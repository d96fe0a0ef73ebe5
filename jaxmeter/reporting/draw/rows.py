"""Rows of marks with labels and numbers, the forest of changes, and places of names that cover no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..view.page_model import CHANGE_SIGNS, DEVICE_SIGNS, Forest, Hue, Mark
from .canvas import Canvas, measure_text
from .scale import BELOW, Scale, draw_x_axis, fit_changes

RADIUS = 4.0
DOT_DROP = 9.0
"""Pixels below the estimate at which its processes lie."""

"""Width of an interval's bar."""

REFERENCE_HALF = 7.0
"""Half the height of the bar that is a row's reference."""


def list_numbers(mark: Mark) -> Iterator[float]:
    """Yield the numbers that a mark shows, which the scale must hold: the estimate, both bounds, the processes."""
    estimate = mark.estimate
    yield estimate.value
    if estimate.low is not None and estimate.high is not None:
        yield from (estimate.low, estimate.high)
    yield from estimate.dots


def draw_mark(
    canvas: Canvas, mark: Mark, scale: Scale, across: float, *, is_vertical: bool = False, radius: float = RADIUS
) -> None:
    """Draw a mark where its value lies on the scale; nothing where the scale cannot show it.

    Args:
      across: The pixel on the other axis.
      is_vertical: Whether the scale is of the y axis.
    """
    estimate = mark.estimate
    if not scale.shows(estimate.value):
        return
    with canvas.group(f"m {mark.hue.value}", title=mark.says, variant=mark.variant, case=mark.case):
        dots = [scale(value) for value in estimate.dots if scale.shows(value)]
        canvas.dots([(across + DOT_DROP, at) if is_vertical else (at, across + DOT_DROP) for at in dots])
        bounds = [bound for bound in (estimate.low, estimate.high) if bound is not None and scale.shows(bound)]
        if len(bounds) == 2:
            low, high = map(scale, bounds)
            ends = (across, low, across, high) if is_vertical else (low, across, high, across)
            canvas.line(*ends)
        at = scale(estimate.value)
        x, y = (across, at) if is_vertical else (at, across)
        if mark.is_reference:
            canvas.line(x, y - REFERENCE_HALF, x, y + REFERENCE_HALF)
        else:
            draw_shape(canvas, mark.hue, x, y, radius, is_hollow=estimate.is_doubtful)


def draw_shape(canvas: Canvas, hue: Hue, x: float, y: float, radius: float, *, is_hollow: bool = False) -> None:
    """Draw the shape of a hue: a GPU's is a square, a TPU's a diamond, any other a circle."""
    classes = "hollow" if is_hollow else ""
    if hue is Hue.GPU:
        half = radius * 0.9
        canvas.add("rect", classes, x=x - half, y=y - half, width=2 * half, height=2 * half)
    elif hue is Hue.TPU:
        half = radius * 1.3
        canvas.add(
            "path",
            classes,
            d=f"M{x:.1f} {y - half:.1f}l{half:.1f} {half:.1f}l{-half:.1f} {half:.1f}l{-half:.1f} {-half:.1f}z",
        )
    else:
        canvas.add("circle", classes, cx=x, cy=y, r=radius)


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


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return the places, at least `gap` apart, between `low` and `high`, with the least sum of squared moves.

    Neighbours that are too near form a group, which lies around the mean of where its members would be; a group that
    comes too near to the one before is joined to it. Places that have no room together keep their gaps, the last one
    at `high`.
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    groups: list[tuple[float, int]] = []  # (where the first member should be, how many members)
    for index in order:
        wanted, count = places[index], 1
        while groups and _keep_inside(*groups[-1], gap, low, high) + gap * groups[-1][1] > _keep_inside(
            wanted, count, gap, low, high
        ):
            first, members = groups.pop()
            wanted = (first * members + (wanted - gap * members) * count) / (members + count)
            count += members
        groups.append((wanted, count))
    moved = list(places)
    rest = iter(order)
    for wanted, count in groups:
        start = _keep_inside(wanted, count, gap, low, high)
        for number in range(count):
            moved[next(rest)] = start + gap * number
    return moved


def _keep_inside(wanted: float, count: int, gap: float, low: float, high: float) -> float:
    """Return where a group of so many begins, so that all of it is inside; its end has priority."""
    return min(max(wanted, low), high - gap * (count - 1))
