"""One metric of one variant: values by process, their interval, and why there is none. The only way to a number."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from scipy.special import stdtrit

from jaxmeter.harness.metrics.metric import Fault, Lack, Metric, Readable, Reading, Summary, Unit
from jaxmeter.harness.metrics.plausibility import (
    LARGEST,
    LARGEST_COUNT,
    LARGEST_LOG_RATIO,
    LONGEST_S,
    MOST_LOOKS,
    SHORTEST_S,
    bound,
    keep_between,
)
from jaxmeter.harness.metrics.statistics import (
    CONFIDENCE,
    FEWEST_PROCESSES,
    Interval,
    find_shared_half,
    find_variance,
    geometric_interval,
    mean_interval,
)
from jaxmeter.harness.metrics.within import stand_alone
from jaxmeter.harness.record.outcomes import INCOMPLETE, Outcome, Status, TimingDetails

DECISIVE_PROBES = frozenset({"", "numerics", "timing"})
"""Where one of these was skipped or is unsupported, so is the variant; the empty name stands for the variant itself."""


def read_metric(source: Readable, metric: Metric) -> Reading:
    """One metric of one variant.

    Raises:
      ValueError: It is of a workload, not of a variant.
    """
    number: Interval | Callable[[], Interval] | None = None
    if metric.derive is not None:
        derived = metric.derive(source)
        values = tuple([keep_between(value, -LARGEST, LARGEST) for value in derived.values])
        fault, contended, number, doubt = derived.fault, derived.contended, derived.interval, derived.doubt
    elif metric.probe is not None:
        values = read_values(source, metric)
        fault, contended = _fault(source, metric), is_contended(source.outcomes.get(metric.probe))
        doubt = ""
    else:
        raise ValueError(f"{metric.name} is of a workload, not of a variant")
    known = [value for value in values if value is not None]
    if metric.unit is Unit.ITEMS_PER_SECOND:
        metric = replace(metric, items=source.planned_case.items_unit)
    looks = count_looks(source) if metric.summary is Summary.TIMING else 1
    shared = source.pool.find_shared(metric.name, source, known)
    if number is None and known:
        number = partial(_summarise, metric, known, source, looks, shared)
    if number is None and fault is None:
        fault = Fault(Lack.NO_VALUE, metric.name, metric.probe)
    return Reading(
        metric=metric,
        values=values,
        number=number,
        exact=metric.exact and len(set(known)) == 1,
        contended=contended,
        fault=fault,
        doubt=doubt,
        looks=looks,
        shared=shared,
    )


def is_contended(outcome: Outcome | None) -> bool:
    """Return whether a timing has contended processes and too few clean ones."""
    if outcome is None or not isinstance(outcome.details, TimingDetails):
        return False
    details = outcome.details
    return details.contended > 0 and not stand_alone(details.processes - details.contended, details.processes)


def is_wrong(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether any probe found a wrong result; such a variant has no speedup, and outside notebooks no times."""
    return any(outcome.status is Status.WRONG for outcome in outcomes.values())


def find_worst(outcomes: Mapping[str, Outcome]) -> tuple[str, Outcome]:
    """The probe that ended worst, and how. That another library has no compiler to probe says nothing bad of it."""
    order = list(Status)
    weighed = {
        probe: outcome
        for probe, outcome in outcomes.items()
        if outcome.status in INCOMPLETE or probe in DECISIVE_PROBES
    }
    return max((weighed or outcomes).items(), key=lambda item: order.index(item[1].status))


def read_values(source: Readable, metric: Metric) -> tuple[float | None, ...]:
    """What the probe recorded, without what cannot have been measured."""
    outcome = source.outcomes.get(metric.probe or "")
    if outcome is None:
        return ()
    is_hidden = is_wrong(source.outcomes) and not source.settings.shows_wrong
    if metric.summary is Summary.TIMING and (outcome.status is not Status.OK or is_hidden):
        return ()
    low, high = _limits(metric)
    return tuple([keep_between(value, low, high) for value in outcome.values.get(metric.name, ())])


def _limits(metric: Metric) -> tuple[float, float]:
    if metric.unit is Unit.SECONDS:
        # No call and no calibration loop takes 0 s, but the time of a part of one may be 0.
        return (SHORTEST_S if metric.probe == "timing" else 0.0), LONGEST_S
    if metric.unit is Unit.LOG_RATIO:
        return -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO
    return (-LARGEST_COUNT if metric.signed else 0.0), LARGEST_COUNT


def _fault(source: Readable, metric: Metric) -> Fault | None:
    """Return why a metric has no number, if the outcome of the metric's probe is not ok."""
    outcomes, probe = source.outcomes, metric.probe or ""
    outcome = outcomes.get(probe)
    if outcomes and (outcome is None or is_wrong(outcomes)):
        worst_probe, worst = find_worst(outcomes)
        if worst.status is not Status.OK:
            return Fault(Lack.ENDED, metric.name, worst_probe, worst)
    if outcome is None:
        asked = probe in source.settings.probes
        return Fault(Lack.NOT_LOOKED if asked else Lack.NOT_ASKED, metric.name, probe)
    return None if outcome.status is Status.OK else Fault(Lack.ENDED, metric.name, probe, outcome)


def _summarise(metric: Metric, known: Sequence[float], source: Readable, looks: int, shared: float) -> Interval:
    """Return the values, at least one, summarised as one number."""
    if metric.summary in (Summary.TIMING, Summary.PROCESSES):
        has_logarithms = metric.unit is not Unit.LOG_RATIO and min(known) > 0
        mean = geometric_interval if has_logarithms else mean_interval
        find = partial(mean, borrowed=source.pool.lend(metric.name, source), shared=shared)
        return bound(find, known, source.settings, looks=looks)
    rules: Mapping[Summary, Callable[[Sequence[float]], float]] = {
        Summary.MEDIAN: statistics.median,
        Summary.STEPS: statistics.median,
        Summary.FIRST: lambda values: values[0],
        Summary.LARGEST: max,
    }
    return Interval(None, rules[metric.summary](known), None, len(known))


def find_timing(source: Readable) -> TimingDetails | None:
    """Return the details of the variant's timing over all processes; None if nothing was timed."""
    timing = source.outcomes.get("timing")
    return timing.details if timing is not None and isinstance(timing.details, TimingDetails) else None


def count_looks(source: Readable) -> int:
    """Return how often the variant's intervals were looked at; once where nothing was timed."""
    timing = find_timing(source)
    return 1 if timing is None else min(max(1, timing.looks), MOST_LOOKS)


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
    parts = (share**2 / (len(values) - 1) for share, values in zip(relative, (above, below), strict=True))
    freedom = sum(relative) ** 2 / sum(parts)
    half = math.hypot(float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(sum(shares)), in_common)
    return Interval(centre - half, centre, centre + half, count)
