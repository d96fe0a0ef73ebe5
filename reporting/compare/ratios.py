"""Ratios of what was measured of two variants: paired by launch, over processes of their own, or exact."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Sequence

from harness.record import Settings
from harness.record.guards import count_looks
from harness.record.metric import Reading, Summary
from harness.record.statistics import Interval

from .statistics import compare_unpaired


def divide_unpaired(above: Sequence[float], below: Sequence[float], *, confidence: float) -> Interval | None:
    """How many times the one's processes have what the other's have; None where one side has no values, all > 0."""
    if not above or not below:
        return None
    try:
        return compare_unpaired(above, below, confidence=confidence)
    except OverflowError:
        return compare_unpaired([summaries.median(above)], [summaries.median(below)])


def divide_readings(above: Reading, below: Reading, settings: Settings) -> Interval | None:
    """The ratio over processes that measured one side each; exact where both sides are. None where one has a 0."""
    values = above.known, below.known
    if not all(values) or min(map(min, values)) <= 0:
        return None
    if above.exact and below.exact:
        ratio = above.known[0] / below.known[0]
        return Interval(ratio, ratio, ratio, min(map(len, values)))
    # The error is shared among the looks that decided how many launches there are.
    looked = any(one.metric.summary is Summary.LAUNCHES for one in (above, below))
    error = (1 - settings.confidence) / (count_looks(settings) if looked else 1)
    return divide_unpaired(*values, confidence=1 - error)
