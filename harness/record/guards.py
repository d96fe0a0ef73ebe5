"""What can have been measured and what is a damaged file; means of values that lie too far apart for a float."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.record.outcomes import Number
from harness.record.settings import Settings
from harness.record.statistics import Interval

SHORTEST_S, LONGEST_S = 1e-12, 1e9
LARGEST_LOG_RATIO = 50.0
LARGEST_COUNT = 2.0**62
"""Beyond these a value is a damaged file, not a measurement: a picosecond, thirty years, 10^21 times, an exbibyte."""

LARGEST = 1e300
"""Of what is computed from others; beyond it, the next step could overflow."""


def bound(mean: Callable[..., Interval], values: Sequence[float], settings: Settings, *, looks: int = 1) -> Interval:
    """The mean with the bounds that are shown and those that verdicts go by.

    Values that differ by more than a float can hold have a middle, and no bounds.
    """
    try:
        decisive = mean(values, confidence=settings.confidence, looks=looks)
        if settings.shown_confidence is None:
            return decisive
        return replace(mean(values, confidence=settings.shown_confidence, looks=looks), verdict=decisive)
    except OverflowError:
        return mean([summaries.median(values)])


def keep_between(value: Number | None, low: float, high: float) -> float | None:
    """The value, or None where it lies outside: no measurement."""
    # Compared before it is converted, since a count in a damaged file may be larger than any float.
    return float(value) if value is not None and low <= value <= high else None


def usable_size(value: Number | None) -> float | None:
    """A size or count as it may have been recorded, else None: of what is no metric, such as a buffer."""
    return keep_between(value, 0.0, LARGEST_COUNT)
