"""Whether two measurements of unchanged code would be called different, and how often that is: pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from scipy.stats import t

from harness.record.rates import BOUNDS_CONFIDENCE, bound_rate
from harness.record.statistics import CONFIDENCE, FEWEST_LAUNCHES, Interval, exponentiate


def compare_runs(first: Sequence[float], second: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval:
    """The second over the first, as a ratio of two independent geometric means.

    Args:
      first, second: One value per launch, all > 0.
    Returns:
      Welch's interval, without bounds where one side has too few launches. Its count is of both.
    Source: B. L. Welch, The generalization of 'Student's' problem, 1947; degrees of freedom as Satterthwaite's.
    """
    logs = [[math.log(value) for value in values] for values in (first, second)]
    count, difference = len(first) + len(second), statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    if min(map(len, logs)) < FEWEST_LAUNCHES:
        return exponentiate(Interval(None, difference, None, count))
    errors = [statistics.variance(values) / len(values) for values in logs]
    if sum(errors) == 0:
        return exponentiate(Interval(difference, difference, difference, count))
    freedom = sum(errors) ** 2 / sum(error**2 / (len(values) - 1) for error, values in zip(errors, logs, strict=True))
    half = float(t.isf((1 - confidence) / 2, freedom)) * math.sqrt(sum(errors))
    return exponentiate(Interval(difference - half, difference, difference + half, count))


def write_rate(count: int, of: int) -> str:
    """`3 of 300 (1.0 %; 95 % bounds 0.2 to 2.9 %)`."""
    if of == 0:
        return "none to count"
    low, high = bound_rate(count, of)
    return (
        f"{count} of {of} ({100 * count / of:.1f} %; {100 * BOUNDS_CONFIDENCE:.0f} % bounds "
        f"{100 * low:.1f} to {100 * high:.1f} %)"
    )
