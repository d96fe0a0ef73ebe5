"""Statistics that only pages need: how a metric grows, and ratios of unpaired processes."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import scipy.stats

from harness.record.statistics import CONFIDENCE, FEWEST_LAUNCHES, Interval, exponentiate


@dataclass(frozen=True)
class Growth:
    """A power law through a sweep: metric ~ n ** exponent."""

    exponent: Interval
    factor: float


def fit_growth(sizes: Iterable[float], values: Iterable[float], *, confidence: float = CONFIDENCE) -> Growth:
    """Least-squares line through log(value) against log(size); the exponent with a t interval.

    Args:
      sizes, values: One pair per case of the sweep, all > 0.
    Raises:
      ValueError: Fewer than 2 different sizes, or a value that is not positive.
    """
    xs = [math.log(size) for size in sizes]
    ys = [math.log(value) for value in values]
    count = len(xs)
    if len(set(xs)) < 2:
        raise ValueError("growth needs at least 2 different sizes")
    line = scipy.stats.linregress(xs, ys)
    slope, factor = float(line.slope), math.exp(line.intercept)
    if count < FEWEST_LAUNCHES:
        return Growth(Interval(None, slope, None, count), factor)
    # Of values that are all equal SciPy's line has no error, NaN; here it is that they lie on it.
    error = float(line.stderr) if len(set(ys)) > 1 else 0.0
    half = float(scipy.stats.t.isf((1 - confidence) / 2, count - 2)) * error
    return Growth(Interval(slope - half, slope, slope + half, count), factor)


def compare_unpaired(
    numerators: Sequence[float], denominators: Sequence[float], *, confidence: float = CONFIDENCE
) -> Interval:
    """Ratio of two geometric means of unpaired processes, with Welch's t interval on the logs.

    Args:
      numerators, denominators: One per process, shapes (j,) and (k,), all > 0.
    Returns:
      Interval, dimensionless; its count is the smaller of j and k.
    Raises:
      ValueError: No values, or one that is not positive.
    Source: Welch, The generalization of 'Student's' problem when several different population variances are involved,
      Biometrika 34, 1947, pages 28-35.
    """
    above, below = ([math.log(value) for value in values] for values in (numerators, denominators))
    if not above or not below:
        raise ValueError("compare_unpaired needs at least one value on each side")
    centre, count = statistics.fmean(above) - statistics.fmean(below), min(len(above), len(below))
    if count < FEWEST_LAUNCHES or not 0 <= confidence < 1:  # a record may hold any number
        return exponentiate(Interval(None, centre, None, count))
    if len(set(above)) == len(set(below)) == 1:
        return exponentiate(Interval(centre, centre, centre, count))
    with warnings.catch_warnings():
        # Times that differ in their last digits only: the interval is as narrow as they are.
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        bounds = scipy.stats.ttest_ind(above, below, equal_var=False).confidence_interval(confidence)
    return exponentiate(Interval(float(bounds.low), centre, float(bounds.high), count))
