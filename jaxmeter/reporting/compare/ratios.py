"""Ratios of what was measured of two variants: paired by process, over processes of their own, or exact."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from jaxmeter.harness.metrics.across import subtract_means
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.plausibility import at_both_levels
from jaxmeter.harness.metrics.statistics import CONFIDENCE, Interval, exponentiate
from jaxmeter.harness.record import Settings


def compare_unpaired(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    shared: float = 0.0,
) -> Interval:
    """Ratio of two geometric means of unpaired processes, with Welch's t interval on the logs.

    Args:
      numerators, denominators: One per process, shapes (j,) and (k,), all > 0.
      shared: Variance of the ratio's logarithm, of what the processes of a side have in common, and the two sides not.
    Returns:
      Interval, dimensionless; its count is the smaller of j and k.
    Raises:
      ValueError: No values, or one that is not positive.
    """
    above, below = ([math.log(value) for value in values] for values in (numerators, denominators))
    return exponentiate(subtract_means(above, below, confidence=confidence, shared=shared))


def divide_unpaired(
    above: Sequence[float], below: Sequence[float], settings: Settings, *, looks: int = 1, shared: float = 0.0
) -> Interval | None:
    """How many times the one's processes have what the other's have; None where one side has no values, all > 0.

    Args:
      looks: How often they were looked at to decide how many there are; the error is shared among them.
      shared: Variance of the ratio's logarithm, of what the processes of a side have in common, and the two sides not.
    """
    if not above or not below:
        return None

    def compare(confidence: float) -> Interval:
        return compare_unpaired(above, below, confidence=1 - (1 - confidence) / looks, shared=shared)

    try:
        return at_both_levels(settings, compare)
    except OverflowError:
        return compare_unpaired([statistics.median(above)], [statistics.median(below)])


def divide_readings(above: Reading, below: Reading, settings: Settings, *, two_runs: bool = False) -> Interval | None:
    """The ratio over processes that measured one side each; exact where both sides are. None where one has a 0.

    Args:
      two_runs: Whether the sides are of two runs, which differ by more than their processes tell.
    """
    values = above.known, below.known
    if not all(values) or min(map(min, values)) <= 0:
        return None
    if above.exact and below.exact:
        ratio = above.known[0] / below.known[0]
        return Interval(ratio, ratio, ratio, min(map(len, values)))
    shared = above.shared + below.shared if two_runs else 0.0
    return divide_unpaired(*values, settings, looks=max(above.looks, below.looks), shared=shared)
