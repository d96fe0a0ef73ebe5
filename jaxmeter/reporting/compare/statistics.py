"""Ratios of unpaired processes, which only pages need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmeter.harness.metrics.statistics import CONFIDENCE, Interval, exponentiate
from jaxmeter.harness.metrics.unpaired import subtract_means


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
