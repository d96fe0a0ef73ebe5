"""Two sides that were measured in processes of their own, so that no pair has anything in common."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from scipy.special import stdtrit

from jaxmeter.harness.metrics.statistics import CONFIDENCE, FEWEST_PROCESSES, Interval, find_shared_half, find_variance


def subtract_means(
    above: Sequence[float], below: Sequence[float], *, confidence: float = CONFIDENCE, shared: float = 0.0
) -> Interval:
    """Difference of two independent means, with Welch's t interval.

    Args:
      above, below: One per process, shapes (j,) and (k,).
      shared: Variance of the difference, of what all processes of a side have in common, and the two sides have not.
    Returns:
      Interval in their unit; its count is the smaller of j and k.
    Raises:
      ValueError: A side without values.
    Source: Welch, The generalization of 'Student's' problem when several different population variances are involved,
      Biometrika 34, 1947, pages 28-35.
    """
    if not above or not below:
        raise ValueError("a difference of means needs at least one value of each arm")
    centre, count = statistics.fmean(above) - statistics.fmean(below), min(len(above), len(below))
    if count < FEWEST_PROCESSES or not 0 <= confidence < 1:  # a record may hold any number
        return Interval(None, centre, None, count)
    shares = [0.0 if len(set(values)) == 1 else find_variance(values) / len(values) for values in (above, below)]
    largest = max(shares)
    in_common = find_shared_half(shared, confidence)
    if largest == 0:
        return Interval(centre - in_common, centre, centre + in_common, count)
    # Welch's degrees of freedom by the shares relative to the larger, which no squaring can overflow.
    relative = [share / largest for share in shares]
    parts = (one**2 / (len(values) - 1) for one, values in zip(relative, (above, below), strict=True))
    freedom = sum(relative) ** 2 / sum(parts)
    half = math.hypot(float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(sum(shares)), in_common)
    return Interval(centre - half, centre, centre + half, count)
