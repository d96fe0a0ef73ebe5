"""`Measurement.plot`: the time of each variant, drawn by matplotlib into a notebook."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxmeter.document.numbers import choose_unit
from jaxmeter.harness.metrics.statistics import find_block_time
from jaxmeter.harness.record import VariantSamples
from jaxmeter.harness.record.extras import describe_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCHES = 6.0, 0.5
"""Width of a figure, and height of a row."""

LOG_FROM = 10.0
"""Quotient of the longest and the shortest time from which the axis is logarithmic."""


def draw_times(timed: Sequence[tuple[str, VariantSamples, str]], axes: Axes | None) -> Axes:
    """Return axes with a row for each variant: a mark at its time, and a faint dot for each of its blocks.

    Args:
      timed: Name, samples and note of each variant.
      axes: Where to draw; None for a new figure.
    Raises:
      ImportError: matplotlib is not installed; the message says what to install.
    """
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ImportError(describe_missing(error) or str(error)) from error
    if axes is None:
        _, axes = pyplot.subplots(figsize=(INCHES[0], 1 + INCHES[1] * len(timed)), layout="constrained")
    blocks = [[find_block_time(block.samples_s) for block in samples.blocks] for _, samples, _ in timed]
    times = [statistics.median(own) for own in blocks]
    size, unit = choose_unit(min(times))
    for row, (own, time, (_, _, note)) in enumerate(zip(blocks, times, timed, strict=True)):
        axes.plot([value / size for value in own], [row] * len(own), "|", color="0.7")
        axes.plot(time / size, row, "o", color="C0")
        axes.annotate(f"{time / size:.3g} {unit}{note}", (time / size, row), (0, 6), textcoords="offset points")
    axes.set_yticks(range(len(timed)), [name for name, _, _ in timed])
    axes.set_ylim(len(timed) - 0.5, -0.7)
    axes.set_xlabel(f"time of a call [{unit}]")
    if max(times) > LOG_FROM * min(times):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    return axes
