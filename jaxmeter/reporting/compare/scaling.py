"""How a metric grows with a size: one exponent through all sizes, and the local ones between neighbouring sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.optimize
import scipy.stats

from jaxmeter.harness.metrics.statistics import CONFIDENCE, Interval

FEWEST_FOR_BOUNDS = 4
"""Three sizes leave a line one degree of freedom, whose t at 99 % is 63.7: no interval worth the name."""

FEWEST_FOR_CONSTANT = 5
"""A constant, a factor and an exponent are three; as above, two degrees of freedom must be left."""

NEAR = 0.25
"""An exponent this near to another is the same: those that people claim (1, 1.5, 2) lie twice as far apart."""

EXPONENTS = np.linspace(-4, 4, 65)
"""Where the exponent beside a constant is looked for. Beyond, nothing that is timed here grows."""

ROUNDING = 1e-12
"""Relative error of a value that was computed exactly: beside it, exact values scatter by nothing."""

FINE = 1e-9
"""An exponent is shown with two decimals; exact values should give the exact one."""


@dataclass(frozen=True)
class Scaling:
    """Of a metric over a sweep.

    Args:
      exponent: Through all sizes.
      slopes: Of the logarithms, between each two neighbouring sizes, the smallest first.
      exact: Whether it is of counts that are the same in all processes; then there is no error, and no interval.
    """

    exponent: Interval
    slopes: tuple[Interval, ...] = ()
    exact: bool = False

    @property
    def bounded(self) -> tuple[Interval, ...]:
        """What can be judged: the exponent if it has an interval, else the slopes if all have one; else nothing."""
        if _has_bounds(self.exponent):
            return (self.exponent,)
        return self.slopes if all(map(_has_bounds, self.slopes)) else ()

    @property
    def is_told(self) -> bool:
        """Whether that is narrow enough to be of use beside a whole exponent, such as 1 or 2."""
        widths = [slope.high - slope.low for slope in self.bounded if slope.low is not None and slope.high is not None]
        return bool(widths) and max(widths) <= 2 * NEAR

    @property
    def is_lost_beside_constant(self) -> bool:
        """Whether there are sizes enough to set a constant part apart, and the rest may have any exponent."""
        return self.exponent.low is None and len(self.slopes) >= FEWEST_FOR_CONSTANT - 1

    @property
    def may_bend(self) -> bool:
        """Whether the exponent alone could hide a constant part: it has no interval, or none was set apart."""
        return self.exponent.low is None or len(self.slopes) < FEWEST_FOR_CONSTANT - 1


def _has_bounds(interval: Interval) -> bool:
    return interval.low is not None and interval.high is not None


def fit_exponent(
    sizes: Sequence[float], values: Sequence[float], *, confidence: float = CONFIDENCE, exact: bool = False
) -> Interval:
    """The exponent p of a + b * size**p, a >= 0, with the interval that the scatter around it gives.

    Below FEWEST_FOR_CONSTANT sizes a is 0: the least-squares line through the logarithms. So it is where the values do
    not tell an exponent beside a constant, and the line is flat: over these sizes there is nothing but a constant.

    Args:
      sizes, values: One pair per case of the sweep, all > 0.
    Returns:
      Interval: without bounds below FEWEST_FOR_BOUNDS sizes, or where the scatter allows any exponent. Exact values
      have no scatter: both bounds are the estimate.
    Raises:
      ValueError: Fewer than 2 different sizes, or a value that is not positive.
    """
    xs, ys = (np.array([math.log(value) for value in some]) for some in (sizes, values))
    count = len(set(xs))
    if count < 2:
        raise ValueError("growth needs at least 2 different sizes")
    line = _fit_line(xs, ys, confidence)
    fitted = None if count < FEWEST_FOR_CONSTANT else _fit_beside_constant(xs, ys, confidence)
    if exact:
        estimate = (fitted or line).estimate
        return Interval(estimate, estimate, estimate, len(xs))
    is_flat = line.low is not None and line.high is not None and max(-line.low, line.high) <= NEAR
    if fitted is not None or count < FEWEST_FOR_CONSTANT or is_flat:
        return fitted or line
    return Interval(None, line.estimate, None, len(xs))


def find_slope(ratio: Interval, smaller: float, larger: float) -> Interval:
    """The local exponent between two sizes, from the ratio of the larger one's value to the smaller one's, > 0.

    Raises:
      ValueError: Sizes that their logarithms do not tell apart.
    """
    step = math.log(larger) - math.log(smaller)
    if step <= 0:
        raise ValueError("a slope needs two different sizes")
    low, high = (None if bound is None or bound <= 0 else math.log(bound) / step for bound in (ratio.low, ratio.high))
    verdict = None if ratio.verdict is None else find_slope(ratio.verdict, smaller, larger)
    return Interval(low, math.log(ratio.estimate) / step, high, ratio.count, verdict)


def _fit_line(xs: np.ndarray, ys: np.ndarray, confidence: float) -> Interval:
    """The slope with its t interval."""
    line = scipy.stats.linregress(xs, ys)
    slope, count = float(line.slope), len(xs)
    if len(set(xs)) < FEWEST_FOR_BOUNDS:
        return Interval(None, slope, None, count)
    # Of values that are all equal SciPy's line has no error, NaN; here it is that they lie on it.
    error = float(line.stderr) if len(set(ys)) > 1 else 0.0
    half = float(scipy.stats.t.isf((1 - confidence) / 2, count - 2)) * error
    return Interval(slope - half, slope, slope + half, count)


def _fit_beside_constant(xs: np.ndarray, ys: np.ndarray, confidence: float) -> Interval | None:
    """The exponent with its profile t interval; None where a bound lies beyond all EXPONENTS.

    For each exponent the other two are linear, so the misfit is a function of one variable. Relative errors count, as a
    long time errs by more seconds than a short one.
    Source: Bates & Watts, Nonlinear Regression Analysis and Its Applications, 1988, chapter 6 (profile t); Golub &
      Pereyra, SIAM Journal on Numerical Analysis 10, 1973, pages 413-432 (variables that separate).
    """
    misfit = partial(_misfit, xs, np.exp(ys - ys.mean()))
    misfits = np.array([misfit(tried) for tried in EXPONENTS])
    best = int(misfits.argmin())
    around = EXPONENTS[max(best - 1, 0)], EXPONENTS[min(best + 1, len(EXPONENTS) - 1)]
    exponent = float(scipy.optimize.minimize_scalar(misfit, bounds=around, method="bounded", options={"xatol": FINE}).x)
    freedom = len(xs) - 3
    quantile = float(scipy.stats.t.isf((1 - confidence) / 2, freedom))
    most = misfit(exponent) * (1 + quantile**2 / freedom) + len(xs) * ROUNDING**2
    allowed = [*EXPONENTS[misfits <= most], exponent]
    low, high = (_find_edge(misfit, most, float(end(allowed)), sign) for end, sign in ((min, -1), (max, 1)))
    return None if low is None or high is None else Interval(low, exponent, high, len(xs))


def _find_edge(misfit: Callable[[float], float], most: float, inner: float, sign: int) -> float | None:
    """Where the misfit exceeds the most, outwards from the last exponent that does not; None beyond all EXPONENTS."""
    outer = [float(tried) for tried in EXPONENTS if sign * tried > sign * inner][::sign]
    if not outer or misfit(inner) >= most:
        return inner if outer else None
    return float(scipy.optimize.brentq(lambda tried: misfit(tried) - most, inner, outer[0]))


def _misfit(xs: np.ndarray, values: np.ndarray, exponent: float) -> float:
    """Least sum of squared relative errors of a + b * exp(x)**exponent, where a and b are at least 0."""
    powers = exponent * xs
    # Scaled so that nothing overflows; b takes the scale.
    columns = [column / np.linalg.norm(column) for column in (1 / values, np.exp(powers - powers.max()) / values)]
    solution = np.linalg.lstsq(np.stack(columns, axis=1), np.ones_like(xs), rcond=None)[0]
    if min(solution) >= 0:
        return float(np.sum((solution @ columns - 1) ** 2))
    # The least lies on an edge: one of the two alone.
    return min(float(np.sum((column.sum() * column - 1) ** 2)) for column in columns)
