"""Variances pooled over the variants of a run: an empirical-Bayes prior, and the speed of the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import Any, Protocol

import numpy
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtrc, fdtr, fdtrc, fdtri, gammainc, gammainccinv, gammaincinv, polygamma, psi

from jaxmeter.harness.metrics.statistics import (
    BETWEEN_RUNS,
    LOG_UNLIKE,
    MINIMUM_EFFECT,
    RATIOS_BETWEEN_RUNS,
    PseudoProcess,
    VarianceModeration,
    VariancePrior,
)
from jaxmeter.harness.record.cases import NATIVE, PlannedCase, PlannedVariant

FEWEST_POOLED = 10
"""Fewest variances, and fewest cases that they come from, for a prior. With fewer, no value lies beyond the tails that
are cut, and one outlier determines the prior."""

LOWER_TAIL, UPPER_TAIL = 0.05, 0.1
"""Shares of the variances that are winsorised, to the nearest other variance, before the prior is fitted. These are
limma's, by Phipson et al.: too large variances are more harmful than too small ones."""

SMALLEST_MEDIAN = 1e-200
"""Of variances. Below it they are as good as 0: no times scatter by so little, and the next steps would underflow."""

SMALLEST_PLAIN, SMALLEST_ROBUST = 1e-5, 1e-12
"""Of the median variance: smaller ones, zero among them, are lifted to it, for their logarithms say too much (limma's).
"""

ROUNDING = 1e-9
"""Share by which two variances may differ that are the same number, computed in another order."""

NODES = 64
"""Of the quadrature of a smooth function of a probability; half of them give the same 12 digits."""

SMALLEST_EXCESS = 1e-6
"""An excess of the variance of logs below it is that of 1 / excess degrees: trigamma(y) is 1 / y there, to 6 digits."""

LEAST_TAIL = 1e-300
"""A tail's probability that a float can still hold and invert."""

Floats = NDArray[numpy.floating[Any]]


@dataclass(frozen=True)
class Prior:
    """How the variances of a group scatter.

    Args:
      degrees: d0, as it is of variants that are no outliers; may be infinite, where all have one variance.
      variance: s0².
      by_variant: d0 of each variant, in the order given; smaller where its variance is too large for the group.
      pooled_degrees: The degrees of all that is independent of each other: nothing can be known better than that.
    """

    degrees: float
    variance: float
    by_variant: tuple[float, ...]
    pooled_degrees: float

    def lend(self, index: int) -> VariancePrior:
        """What one variant borrows, by its place in the order given."""
        return VariancePrior(self.variance, self.by_variant[index], self.pooled_degrees)


def fit_prior(variances: Sequence[float], degrees: Sequence[float], *, most_degrees: float = math.inf) -> Prior | None:
    """The robust prior.

    Args:
      variances: One per variant, shape (n,), finite and >= 0.
      degrees: Of each variance, shape (n,), > 0.
      most_degrees: Of all together, where variances share what they scatter by.
    Returns:
      None with fewer than FEWEST_POOLED variances, and where half of them are as good as 0: then they have no scale.
    Raises:
      ValueError: The shapes differ, or a value is outside these ranges.
    """
    observed, own = numpy.asarray(variances, float), numpy.asarray(degrees, float)
    if observed.shape != own.shape or observed.ndim != 1:
        raise ValueError(f"one number of degrees for each variance, not {own.shape} for {observed.shape}")
    if not (numpy.isfinite(observed) & (observed >= 0) & numpy.isfinite(own) & (own > 0)).all():
        raise ValueError("variances are finite and not below 0, their degrees finite and above 0")
    if len(observed) < FEWEST_POOLED or (median := float(numpy.median(observed))) < SMALLEST_MEDIAN:
        return None
    pooled = min(float(own.sum()), most_degrees)
    observed = numpy.maximum(observed, SMALLEST_ROBUST * median)
    plain_degrees, plain_variance = fit_plainly(observed, own)
    most = float(own.max())
    alike = _bring_to_degrees(observed / plain_variance, own, most, plain_degrees) * plain_variance
    logs = numpy.log(alike)
    drawn_in = numpy.clip(logs, *numpy.quantile(logs, [LOWER_TAIL, 1 - UPPER_TAIL]))
    prior_degrees = _solve_degrees(float(drawn_in.var(ddof=1)), most, plain_degrees)
    if prior_degrees is None:
        return Prior(plain_degrees, plain_variance, (plain_degrees,) * len(observed), pooled)
    variance = math.exp(float(drawn_in.mean()) - _winsorised_moments(most, prior_degrees)[0])
    by_variant = _lessen_for_outliers(alike / variance, most, prior_degrees)
    return Prior(prior_degrees, variance, tuple(map(float, by_variant)), pooled)


def fit_plainly(variances: Floats, degrees: Floats) -> tuple[float, float]:
    """(d0, s0²) by the moments of the logs, which outliers enlarge: Smyth 2004, section 6.2."""
    lifted = numpy.maximum(variances, SMALLEST_PLAIN * numpy.median(variances))
    centred = numpy.log(lifted) - psi(degrees / 2) + numpy.log(degrees / 2)
    excess = float(centred.var(ddof=1) - polygamma(1, degrees / 2).mean())
    if excess <= 0:
        return math.inf, float(lifted.mean())
    half = _invert_trigamma(excess)
    return 2 * half, math.exp(float(centred.mean()) + float(psi(half)) - math.log(half))


def _invert_trigamma(value: float) -> float:
    """The y > 0 whose trigamma is the value: it lies between 1 / y and 1 / y + 1 / y²."""
    if value < SMALLEST_EXCESS:
        return 1 / value
    most = (1 + math.sqrt(1 + 4 * value)) / (2 * value)
    return float(brentq(lambda y: float(polygamma(1, y)) - value, 1 / value, most, rtol=1e-12))


def _solve_degrees(observed: float, own: float, plain: float) -> float | None:
    """Return d0 with which winsorised logs have the observed variance: the plain fit's d0 or more.

    Returns:
      Infinity if the logs scatter no more than equal variances would; None if the plain fit is kept, because only it
      gives infinity.
    """
    if observed <= _winsorised_moments(own, math.inf)[1]:
        return math.inf
    if math.isinf(plain):
        return None

    def lacking(share: float) -> float:
        """Return the missing variance, on a log scale, with d0 = share / (1 - share)."""
        return math.log(observed / _winsorised_moments(own, math.inf if share == 1 else share / (1 - share))[1])

    least = plain / (1 + plain)
    if lacking(least) >= 0:
        return plain
    share = float(brentq(lacking, least, 1.0, xtol=1e-12))
    return share / (1 - share)


@cache
def _find_nodes() -> tuple[Floats, Floats]:
    """Of Gauss and Legendre: finding them takes as long as a hundred sums over them."""
    nodes, weights = numpy.polynomial.legendre.leggauss(NODES)
    return nodes, weights


def _winsorised_moments(own: float, prior: float) -> tuple[float, float]:
    """Mean and variance of log F with `own` and `prior` degrees, its tails drawn in to their quantiles."""
    nodes, weights = _find_nodes()
    middle = 1 - LOWER_TAIL - UPPER_TAIL
    probabilities = numpy.concatenate(([LOWER_TAIL], LOWER_TAIL + middle * (nodes + 1) / 2, [1 - UPPER_TAIL]))
    shares = numpy.concatenate(([LOWER_TAIL], middle * weights / 2, [UPPER_TAIL]))
    logs = numpy.log(_lower_quantile(probabilities, own, prior))
    mean = float(shares @ logs)
    return mean, float(shares @ (logs - mean) ** 2)


def _bring_to_degrees(ratios: Floats, own: Floats, most: float, prior: float) -> Floats:
    """F ratios with fewer degrees as those that are as improbable with the most, counted from the nearer tail."""
    upper, lower = _upper_tail(ratios, own, prior), _lower_tail(ratios, own, prior)
    from_above = _upper_quantile(numpy.maximum(upper, LEAST_TAIL), most, prior)
    from_below = _lower_quantile(numpy.maximum(lower, LEAST_TAIL), most, prior)
    return numpy.where(own == most, ratios, numpy.where(upper < lower, from_above, from_below))


def _lessen_for_outliers(ratios: Floats, own: float, prior: float) -> Floats:
    """d0 of each variant: the prior's, or less as its variance is larger than so many draws should bring.

    Args:
      ratios: Of the variances over s0², all with `own` degrees.
    """
    count, ratios = len(ratios), _join_ties(ratios)
    tails = _upper_tail(ratios, own, prior)
    ordered = numpy.sort(ratios)
    ranks = (numpy.searchsorted(ordered, ratios, "left") + numpy.searchsorted(ordered, ratios, "right") + 1) / 2
    usual = numpy.minimum(tails / ((count - ranks + 0.5) / count), 1)
    if (usual == 1).all():
        return numpy.full(count, prior)
    if math.isinf(prior):
        lessened = numpy.where(usual < 1, usual * count * own, math.inf)
    else:
        lessened = usual * prior + (1 - usual) * _degrees_of_the_worst(ratios, own, prior)
    # Who is further out has no more than who is less far; below the least mean from the outside on all have that mean.
    order = numpy.argsort(tails, kind="stable")
    from_outside = lessened[order]
    if math.isfinite(prior):
        means = numpy.cumsum(from_outside) / numpy.arange(1, count + 1)
        last = int(means.argmin())
        from_outside[: last + 1] = means[last]
    lessened[order] = numpy.maximum.accumulate(from_outside)
    return lessened


def _join_ties(values: Floats) -> Floats:
    """Return the values, made equal where only rounding separates them: their order must not depend on rounding."""
    order = numpy.argsort(values, kind="stable")
    ordered = values[order]
    begins = numpy.concatenate(([True], ordered[1:] > (1 + ROUNDING) * ordered[:-1]))
    firsts = numpy.maximum.accumulate(numpy.where(begins, numpy.arange(len(values)), 0))
    joined = numpy.empty_like(values)
    joined[order] = ordered[firsts]
    return joined


def _degrees_of_the_worst(ratios: Floats, own: float, prior: float) -> float:
    """The d0 with which the largest ratio would be the median of largest ones, in two steps of proportion."""
    degrees = prior
    for _ in range(2):
        tail = float(_upper_tail(ratios, own, degrees).min())
        if tail == 0:
            return 0.0
        degrees *= math.log(0.5) / math.log(tail)
    return degrees


def _upper_tail(ratios: Floats, own: Floats | float, prior: float) -> Floats:
    return chdtrc(own, own * ratios) if math.isinf(prior) else fdtrc(own, prior, ratios)


def _lower_tail(ratios: Floats, own: Floats, prior: float) -> Floats:
    return gammainc(own / 2, own * ratios / 2) if math.isinf(prior) else fdtr(own, prior, ratios)


def _lower_quantile(probabilities: Floats, own: float, prior: float) -> Floats:
    if math.isinf(prior):
        return 2 * gammaincinv(own / 2, probabilities) / own
    return fdtri(own, prior, probabilities)


def _upper_quantile(probabilities: Floats, own: float, prior: float) -> Floats:
    # Of F from above by 1 / F from below: 1 minus a small probability would lose its digits.
    if math.isinf(prior):
        return 2 * gammainccinv(own / 2, probabilities) / own
    return 1 / fdtri(prior, own, probabilities)


RATIO = "speedup"
NORMALISED = "normalised_s"

NO_CALIBRATION = "no calibration loop was timed that times can be divided by"

MIDDLE = 0.9
"""Share of the processes that must agree, and of the blocks that must be at full speed, where a calibration loop counts
as constant: a few are always disturbed."""


class Kind(StrEnum):
    """Whose times scatter alike: peers are timed in processes of their own, with threads of their own."""

    JAX = "JAX's variants"
    PEERS = "peers"


class Planned(Protocol):
    """A variant as it was planned, and the others of its case."""

    @property
    def planned_case(self) -> PlannedCase:
        """What was planned of the case."""

    @property
    def planned(self) -> PlannedVariant:
        """What was planned of the variant."""

    def find(self, variant: str) -> Planned | None:
        """Return another variant of the case, by name; None where the case has none."""


def kind_of(variant: PlannedVariant) -> Kind:
    """Which kind a variant is of."""
    return Kind.PEERS if variant.mode == NATIVE else Kind.JAX


def kind_of_ratio(*sides: Planned) -> Kind:
    """Return the kind of a ratio: `PEERS` if one of the variants is a peer, since peers are not paired."""
    return Kind.PEERS if Kind.PEERS in [kind_of(side.planned) for side in sides] else Kind.JAX


def list_sides(source: Planned) -> tuple[Planned, ...]:
    """Return the variant, and the baseline variant that its ratio refers to."""
    baseline = source.find(source.planned_case.baseline)
    return (source,) if baseline is None else (source, baseline)


@dataclass(frozen=True)
class ReferenceSpeed:
    """The speed of a run's machine: the times of a calibration loop, which is a fixed piece of work.

    Args:
      identity: Identity of the calibration loop; times with different loops cannot be compared.
      processes_s: The loop's time in each process, in ascending order, at least one.
      slow_share: Share of the blocks next to which the core was slow.
      baseline_s: The loop's median in the baseline run, to which times are normalised; None for the run's own median.
      baseline: Name of the baseline run.
    """

    identity: str
    processes_s: tuple[float, ...]
    slow_share: float = 0.0
    baseline_s: float | None = None
    baseline: str = ""

    @cached_property
    def median_s(self) -> float:
        """The calibration loop's median over the run's processes."""
        return float(numpy.median(self.processes_s))

    @property
    def calibration_s(self) -> float:
        """The calibration loop's time to which times are normalised."""
        return self.median_s if self.baseline_s is None else self.baseline_s

    @cached_property
    def is_constant(self) -> bool:
        """Whether the machine had one speed: then dividing by the calibration loop changes no verdict."""
        low, high = numpy.quantile(self.processes_s, [(1 - MIDDLE) / 2, (1 + MIDDLE) / 2])
        return bool(high <= low * (1 + MINIMUM_EFFECT)) and self.slow_share <= 1 - MIDDLE


@dataclass(frozen=True)
class Spread:
    """How a metric's processes scatter, over the variants of one kind.

    Args:
      places: Of each variant in the prior, by case and name.
    """

    prior: Prior
    places: Mapping[tuple[str, str], int]

    @property
    def cases(self) -> int:
        """From how many cases the variants are: only those are independent."""
        return len({case for case, _ in self.places})

    @property
    def deviation(self) -> float:
        """s0: the standard deviation of the logs."""
        return math.sqrt(self.prior.variance)


@dataclass(frozen=True)
class Pool:
    """What a variant's intervals borrow from the run around it; an empty one lends nothing.

    Args:
      reference: None where there is none, and then why.
      spreads: By metric and kind; where one is missing, intervals are ordinary t intervals.
      usual_ratios: By kind, how far a ratio's processes usually deviate: a variance of logs.
    """

    reference: ReferenceSpeed | None = None
    no_reference: str = NO_CALIBRATION
    spreads: Mapping[tuple[str, Kind], Spread] = field(default_factory=dict)
    usual_ratios: Mapping[Kind, float] = field(default_factory=dict)

    def lend(self, metric: str, source: Planned) -> VarianceModeration | None:
        """What is known of the scatter of a variant's metric from the others."""
        if metric == RATIO:
            return self.lend_to_ratio(*list_sides(source))
        spread = self.spreads.get((metric, kind_of(source.planned)))
        place = None if spread is None else spread.places.get((source.planned_case.id, source.planned.name))
        return None if spread is None or place is None else spread.prior.lend(place)

    def lend_to_ratio(self, *sides: Planned) -> PseudoProcess | None:
        """What is known of the scatter of a ratio of variants."""
        variance = self.usual_ratios.get(kind_of_ratio(*sides))
        return None if variance is None else PseudoProcess(variance)

    def find_shared(self, metric: str, source: Planned, values: Sequence[float]) -> float:
        """The variance of a metric's logarithms that a run's processes share, and those of another run do not.

        It is known of normalised times and of ratios only.

        Args:
          values: By process, all > 0.
        """
        if metric == RATIO and values:
            return self.find_shared_of_ratio(math.fsum(map(math.log, values)) / len(values), *list_sides(source))
        return BETWEEN_RUNS**2 if metric == NORMALISED and self._has_varied else 0.0

    def find_shared_of_ratio(self, log_ratio: float, *sides: Planned) -> float:
        """The same of a ratio of variants.

        A ratio to a peer has the error of a time. That of an A/A control or a replay to its own variant has none.
        """
        is_to_its_like = len({side.planned.same_as or side.planned.name for side in sides}) == 1
        if not self._has_varied or is_to_its_like:
            return 0.0
        if kind_of_ratio(*sides) is Kind.PEERS:
            return BETWEEN_RUNS**2
        return (RATIOS_BETWEEN_RUNS * min(1.0, abs(log_ratio) / LOG_UNLIKE)) ** 2

    @property
    def _has_varied(self) -> bool:
        """Whether the machine is known to have had more than one speed."""
        return self.reference is not None and not self.reference.is_constant


EMPTY = Pool()
"""Of a case without a run around it."""


def refer_to(own: Pool, baseline: Pool, name: str) -> Pool:
    """Return a run's pool, normalised to a baseline run; not normalised if their calibration loops differ.

    Args:
      baseline: The pool of a run of the same machine, with a calibration loop.
      name: Name of the baseline run.
    """
    here, there = own.reference, baseline.reference
    if here is None or there is None:
        return own
    if here.identity != there.identity:
        return replace(
            own,
            reference=None,
            no_reference=f"its calibration loop is {here.identity}, that of {name} {there.identity}",
        )
    return replace(own, reference=replace(here, baseline_s=there.median_s, baseline=name))
