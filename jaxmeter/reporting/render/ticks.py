"""Logarithmic scales of figures: where their ticks are, how these are written, and how far an axis reaches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jaxmeter.reporting import numbers

MOST_TICKS = 6
ROOM = 1.3
"""Beyond the outermost ticks, so that markers on them are whole."""

SCALES: dict[str, tuple[int, Callable[[float], str]]] = {
    "s": (10, numbers.short_time),
    "B": (4, numbers.short_memory),
    "": (10, numbers.short_count),
}
"""By a panel's unit: what its ticks are powers of, and how they are written."""


def powers(low: float, high: float, base: int = 10, most: int = MOST_TICKS) -> list[float]:
    """Powers of the base around the values, at least 2 and at most so many of them."""
    first, last = _around(low, high, base)
    step = max(1, math.ceil((last - first) / (most - 1)))
    return [float(base) ** power for power in range(first, last + 1, step)]


def limits(values: Sequence[float], base: int) -> tuple[float, float]:
    """Whole powers of the base, so that at least two ticks show, with room for the markers."""
    first, last = _around(min(values), max(values), base)
    return float(base) ** first / ROOM, float(base) ** last * ROOM


def _around(low: float, high: float, base: int) -> tuple[int, int]:
    # Rounded, as the logarithm of 1000 to base 10 is a little less than 3.
    first = math.floor(round(math.log(low, base), 9))
    return first, max(first + 1, math.ceil(round(math.log(high, base), 9)))
