"""The bounds of a rate that is estimated from a count of cases."""

from __future__ import annotations

import math

from scipy.special import betaincinv, stdtr, stdtrit

BOUNDS_CONFIDENCE = 0.95
"""Of the bounds of a rate."""


def bound_rate(count: int, of: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a proportion.

    Source: C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits, 1934.
    """
    tail = (1 - BOUNDS_CONFIDENCE) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, of - count + 1, tail))
    high = 1.0 if count == of else float(betaincinv(count + 1, of - count, 1 - tail))
    return low, high


def hold_another(confidence: float, degrees: float) -> float:
    """Return how often a correct t interval contains the mean of an equal run, which has an error of its own.

    Args:
      degrees: Degrees of freedom of either run's variance.
    """
    reach = float(stdtrit(degrees, (1 + confidence) / 2)) / math.sqrt(2)
    return 2 * float(stdtr(degrees, reach)) - 1
