"""A sheet of paper for a figure: a matplotlib canvas with the colours of a theme, texts, axes and a key.

All lengths are points of 1/72 inch, and a text has as many points as one of the page has pixels. So scales, colours and
widths of texts are those of `reporting.draw`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Affine2D

from jaxmeter.reporting.draw.palette import COLOURS, PANEL
from jaxmeter.reporting.draw.scale import Scale
from jaxmeter.reporting.draw.text import measure_text, shorten_text
from jaxmeter.reporting.text import visible

Theme = Literal["light", "dark"]

PER_INCH = 72

MARGIN, GAP = 10.0, 8.0
"""Around a figure, and between a mark and its text."""

LINE = 16.0
"""Height of a line of text."""

MOST_KEY = 190.0
"""Room of an entry of the key."""

HALO_ALPHA = 0.85
"""Opacity behind a text that lies on a plot."""

_NO_XML = re.compile("[\ufffe\uffff]")
"""Characters that `visible` keeps and no SVG may have."""


@dataclass(frozen=True)
class Entry:
    """An entry of a key: a sign in a colour, and what it means."""

    sign: str
    colour: str
    text: str

    @property
    def width(self) -> float:
        """How much room it takes."""
        return measure_text(f"{self.sign} {self.text}")


class Sheet:
    """A canvas of fixed size. Places are points from its top left corner; colours are names of the palette."""

    def __init__(self, width: float, height: float, theme: Theme) -> None:
        self._theme = 0 if theme == "light" else 1
        self.width, self.height = width, height
        self.background = PANEL[self._theme]
        self.canvas = Canvas(figsize=(width / PER_INCH, height / PER_INCH), facecolor=self.background)
        to_inches = Affine2D().scale(1, -1).translate(0, height).scale(1 / PER_INCH)
        self._places = to_inches + self.canvas.dpi_scale_trans

    def find_colour(self, name: str, opacity: float = 1.0) -> str:
        """Return a colour of the palette, mixed with the background: marks that lie on one another stay one colour."""
        pairs = zip(to_rgb(COLOURS[name][self._theme]), to_rgb(self.background), strict=True)
        red, green, blue = (opacity * own + (1 - opacity) * behind for own, behind in pairs)
        return to_hex((red, green, blue))

    def open_axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Return empty axes whose plot is that rectangle."""
        place = (left / self.width, 1 - bottom / self.height, (right - left) / self.width, (bottom - top) / self.height)
        axes = self.canvas.add_axes(place, facecolor="none")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, pad=5, labelcolor=self.find_colour("tick"))
        axes.set_axisbelow(True)
        return axes

    def set_scale(self, axes: Axes, scale: Scale, which: Literal["x", "y"]) -> None:
        """Give axes the limits and ticks of a scale, with a grid line for each tick."""
        set_kind, set_limits, set_ticks, axis = (
            (axes.set_xscale, axes.set_xlim, axes.set_xticks, axes.xaxis)
            if which == "x"
            else (axes.set_yscale, axes.set_ylim, axes.set_yticks, axes.yaxis)
        )
        set_kind("log" if scale.is_log else "linear")
        set_limits(scale.low, scale.high)
        set_ticks([tick.value for tick in scale.ticks], [fit_text(tick.text) for tick in scale.ticks])
        axis.set_minor_locator(NullLocator())
        axes.grid(axis=which, color=self.find_colour("grid"), linewidth=1)

    def write(
        self,
        x: float,
        y: float,
        text: str,
        colour: str,
        *,
        align: Literal["left", "center", "right"] = "left",
        is_bold: bool = False,
        has_halo: bool = False,
    ) -> None:
        """Write a line of text whose middle is at the height y; it is moved to the side where it would leave the sheet.

        Args:
          has_halo: Whether what lies behind shows through faintly only.
        """
        if not text:
            return
        width = measure_text(text, is_bold=is_bold)
        before = {"left": 0.0, "center": 0.5, "right": 1.0}[align] * width
        halo = {"facecolor": self.background, "edgecolor": "none", "pad": 1, "alpha": HALO_ALPHA}
        self.canvas.text(
            before + min(max(x - before, 0.0), max(self.width - width, 0.0)),
            y,
            text,
            transform=self._places,
            color=self.find_colour(colour),
            horizontalalignment=align,
            verticalalignment="center_baseline",
            fontweight="bold" if is_bold else "normal",
            bbox=halo if has_halo else None,
        )

    def write_titles(self, x: str, y: str, left: float, top: float, right: float, bottom: float) -> None:
        """Write the titles of two axes: y at the top left, x at the bottom right."""
        self.write(left, top, fit_text(y, right - left), "title")
        title = fit_text(x, right - left)
        self.write(right, bottom, title, "title", align="right")

    def write_key(self, lines: Iterable[Iterable[Entry]], top: float) -> None:
        """Write the lines of a key below one another."""
        for place, line in enumerate(lines):
            x, y = MARGIN, top + (place + 0.5) * LINE
            for entry in line:
                self.write(x, y, entry.sign, entry.colour)
                self.write(x + measure_text(f"{entry.sign} "), y, entry.text, "title")
                x += entry.width + 2 * GAP


def arrange_key(entries: Iterable[Entry], width: float) -> list[list[Entry]]:
    """Return the lines of a key on a sheet of that width."""
    lines: list[list[Entry]] = []
    x = 0.0
    for entry in entries:
        shown = Entry(entry.sign, entry.colour, fit_text(entry.text, MOST_KEY))
        if not lines or x + shown.width > width - 2 * MARGIN:
            lines.append([])
            x = 0.0
        lines[-1].append(shown)
        x += shown.width + 2 * GAP
    return lines


def fit_text(text: str, room: float = MOST_KEY, *, is_bold: bool = False) -> str:
    """Return a text as one visible line, shortened to its room."""
    return shorten_text(_NO_XML.sub("\ufffd", visible(text)).strip(), room, is_bold=is_bold)


def measure_widest(texts: Iterable[str], room: float) -> float:
    """Return the width of the widest text, after each is shortened to its room; 0 without any."""
    return max((measure_text(fit_text(text, room)) for text in texts), default=0.0)
