"""Stand-alone figures for slides and papers: matplotlib draws a view's panels and dumbbells, as SVG or PNG."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from jaxmeter.reporting.render.ticks import SCALES, limits, powers
from jaxmeter.reporting.text import shorten
from jaxmeter.reporting.view.page_model import Dumbbells, Panel, Plot, Series

PANEL_INCHES = (3.9, 2.9)
BARS_INCHES = (8.0, 0.32)
"""Width of a figure with bars, and the height of one."""

LONGEST_LABEL = 40
LONGEST_BAR = 60
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<")
DASHES = ("-", "--", "-.", ":")
BOUNDS_ALPHA = 0.6
NO_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
    "png": {"Software": None},
}
"""By format: a figure's bytes depend on nothing but its data."""

DOTS_PER_INCH = 200
"""Of a PNG: sharp on a slide."""

_CANVASES = {"svg": FigureCanvasSVG, "png": FigureCanvasAgg}

BACKGROUND, TEXT, GRID = "#ffffff", "#1b1f24", "#d8dde3"
LINES = ("#004488", "#994455", "#8a6a00")
"""Colours that stay apart for every kind of colour blindness."""


MODES = {"eager": ("o", 0, False), "jit": ("o", 0, True), "aot": ("s", 1, True), "mixed": ("^", 2, True)}
OTHERS = ("D", 1, False)
"""Of a dumbbell by mode: marker, colour, and whether it is filled."""


def draw(figure: Plot | Dumbbells, form: str = "svg") -> bytes:
    """The figure as SVG, or as PNG; equal input gives equal bytes."""
    settings: dict[Any, Any] = {
        "svg.hashsalt": "jaxmeter",
        "svg.fonttype": "none",
        "text.parse_math": False,
        "font.family": ["DejaVu Sans"],
        "font.size": 11,
        "text.color": TEXT,
        "axes.labelcolor": TEXT,
        "axes.edgecolor": GRID,
        "xtick.color": TEXT,
        "ytick.color": TEXT,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # It only measures text; whoever shows the figure has fonts of their own for a letter that its font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        canvas = _draw_bars(figure, form) if isinstance(figure, Dumbbells) else _draw_panels(figure, form)
        file = io.BytesIO()
        canvas.savefig(file, format=form, dpi=DOTS_PER_INCH, metadata=NO_METADATA[form])
        return file.getvalue()


def _open_canvas(width: float, height: float, form: str) -> Canvas:
    canvas = Canvas(figsize=(width, height), facecolor=BACKGROUND, layout="constrained")
    _CANVASES[form](canvas)
    return canvas


def _draw_bars(figure: Dumbbells, form: str) -> Canvas:
    """A row for each bar, with a mark for each mode that it has."""
    canvas = _open_canvas(BARS_INCHES[0], 1.2 + BARS_INCHES[1] * len(figure.bars), form)
    axes = canvas.subplots()
    handles: dict[str, Line2D] = {}
    for row, bar in enumerate(figure.bars):
        times = [end.time_s for end in bar.ends]
        axes.plot((min(times), max(times)), (row, row), color=GRID, linewidth=2, zorder=1)
        for end in bar.ends:
            marker, colour, filled = MODES.get(end.mode, OTHERS)
            look: dict[str, Any] = {"color": LINES[colour], "marker": marker, "linestyle": "none"}
            if end.bounds is not None:
                axes.plot(end.bounds, (row, row), color=LINES[colour], linewidth=4, alpha=BOUNDS_ALPHA / 2)
            (dot,) = axes.plot(end.time_s, row, markerfacecolor=LINES[colour] if filled else BACKGROUND, **look)
            handles.setdefault(end.mode, dot)
    axes.set_yticks(range(len(figure.bars)), [shorten(bar.name, LONGEST_BAR) for bar in figure.bars])
    axes.invert_yaxis()
    axes.set_xscale("log")
    times = [end.time_s for bar in figure.bars for end in bar.ends]
    _scale_axis(axes.xaxis, axes.set_xlim, times, "s")
    axes.set_xlabel(figure.title.partition(";")[0])
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    labels = [f" {shorten(mode, LONGEST_LABEL)}" for mode in handles]
    canvas.legend(list(handles.values()), labels, loc="outside lower center", ncols=len(handles), frameon=False)
    return canvas


def _draw_panels(figure: Plot, form: str) -> Canvas:
    width, height = PANEL_INCHES
    names = tuple(dict.fromkeys(series.name for panel in figure.panels for series in panel.series))
    legend_rows = math.ceil(len(names) / _per_row(len(figure.panels)))
    canvas = _open_canvas(width * len(figure.panels), height + 0.3 * legend_rows, form)
    handles: dict[str, Line2D] = {}
    for axes, panel in zip(canvas.subplots(1, len(figure.panels), squeeze=False)[0], figure.panels, strict=True):
        _panel(axes, panel)
        for series in panel.series:
            style = _style(names.index(series.name))
            handles.setdefault(series.name, _line(axes, series, style))
    # A leading space, since matplotlib hides labels that begin with an underscore.
    labels = [f" {shorten(name, LONGEST_LABEL)}" for name in handles]
    canvas.legend(
        list(handles.values()), labels, loc="outside lower center", ncols=_per_row(len(figure.panels)), frameon=False
    )
    return canvas


def _line(axes: Axes, series: Series, style: dict[str, Any]) -> Line2D:
    """A line through all points, however wide their bounds, which may leave the plot."""
    xs, ys = [point.x for point in series.points], [point.y for point in series.points]
    (line,) = axes.plot(xs, ys, markersize=5, linewidth=1.6, **style)
    for point in series.points:
        if point.bounds is not None:
            axes.plot((point.x, point.x), point.bounds, color=style["color"], linewidth=1, alpha=BOUNDS_ALPHA)
        if point.doubtful:
            marker = {"color": style["color"], "marker": style["marker"], "markerfacecolor": BACKGROUND}
            axes.plot((point.x,), (point.y,), markersize=5, **marker)
    return line


def _per_row(panels: int) -> int:
    return 2 * panels


def _style(index: int) -> dict[str, Any]:
    """Colour, marker and dash together tell more lines apart than there are colours."""
    return {
        "color": LINES[index % len(LINES)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[index // len(LINES) % len(DASHES)],
    }


def _panel(axes: Axes, panel: Panel) -> None:
    axes.set_facecolor(BACKGROUND)
    axes.set_title(panel.title, fontsize=12, loc="left")
    axes.set_xlabel(panel.x_label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    xs = [point.x for series in panel.series for point in series.points]
    ys = [point.y for series in panel.series for point in series.points]
    _scale_axis(axes.xaxis, axes.set_xlim, xs, "")
    _scale_axis(axes.yaxis, axes.set_ylim, ys, panel.unit)
    axes.grid(color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _scale_axis(axis: Axis, limit: Callable[[float, float], object], values: Sequence[float], unit: str) -> None:
    base, write = SCALES[unit]
    axis.set_major_locator(FixedLocator(powers(min(values), max(values), base)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    limit(*limits(values, base))
