"""One metric of one variant: values by process, their interval, and why there is none. The only way to a number."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from harness.record import statistics
from harness.record.cases import PlannedCase, PlannedVariant
from harness.record.metric import Metric, Summary, Unit
from harness.record.outcomes import INCOMPLETE, Number, Outcome, Status, TimingDetails
from harness.record.runs import Environment, Settings
from harness.record.statistics import Interval

SHORTEST_S, LONGEST_S = 1e-12, 1e9
LARGEST_LOG_RATIO = 50.0
LARGEST_COUNT = 2.0**62
"""Beyond these a value is a damaged file, not a measurement: a picosecond, thirty years, 10^21 times, an exbibyte."""

LARGEST = 1e300
"""Of what is computed from others; beyond it, the next step could overflow."""

DECISIVE_PROBES = frozenset({"", "numerics", "timing"})
"""Where one of these was skipped or is unsupported, so is the variant; the empty name stands for the variant itself."""


class Lack(StrEnum):
    """Why a variant has no number of a metric, or one that is not to be relied on."""

    NOT_ASKED = "the run was not asked for its probe"
    NOT_LOOKED = "its probe did not look at this variant"
    ENDED = "its probe, or the variant itself, did not end well"
    NO_VALUE = "its probe ended well, but recorded none"
    NOT_DEFINED = "a variant like this one has no such metric"
    NO_DIFFERENCE = "the two that it compares do not differ"
    NEVER = "it is beyond any number"


@dataclass(frozen=True)
class Fault:
    """What stands in the way of a number.

    Args:
      metric: Of what; in a derived metric, what it lacks.
      probe: The probe that is at fault; None where none is.
      outcome: How that probe ended, where it did not end well.
    """

    lack: Lack
    metric: str
    probe: str | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Reading:
    """One metric of one variant.

    Args:
      values: By process; None where a process has none that can have been measured.
      interval: The number, with bounds where processes give some; None where there is no number.
      exact: Whether the number is exact: the metric is, and it was the same in all processes.
      contended: Whether too much other work disturbed what it was measured from.
      fault: Why there is no number; beside a number, what went wrong although there is one.
    """

    metric: Metric
    values: tuple[float | None, ...] = ()
    interval: Interval | None = None
    exact: bool = False
    contended: bool = False
    fault: Fault | None = None

    @property
    def known(self) -> tuple[float, ...]:
        """The values of the processes that have one."""
        return tuple(value for value in self.values if value is not None)

    @property
    def estimate(self) -> float | None:
        """The number."""
        return None if self.interval is None else self.interval.estimate


@dataclass(frozen=True)
class Derived:
    """What a derived metric has instead of a probe's record: values by process, or why there is none."""

    values: tuple[float | None, ...] = ()
    contended: bool = False
    fault: Fault | None = None


class Readable(Protocol):
    """A variant of a case, and all that was recorded of it."""

    @property
    def planned_case(self) -> PlannedCase:
        """What was planned of the case."""

    @property
    def planned(self) -> PlannedVariant:
        """What was planned of the variant."""

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """By probe; under the empty name of the variant itself, where no probe looked at it."""

    @property
    def environment(self) -> Environment:
        """Where it ran."""

    @property
    def settings(self) -> Settings:
        """How it was measured."""

    def read(self, metric: str) -> Reading:
        """A metric of the variant, by name."""

    def find(self, variant: str) -> Readable | None:
        """Another variant of the case, by name; None where the case has none."""


def read_metric(source: Readable, metric: Metric) -> Reading:
    """One metric of one variant.

    Raises:
      ValueError: It is of a workload, not of a variant.
    """
    if metric.derive is not None:
        derived = metric.derive(source)
        values = tuple(_between(value, -LARGEST, LARGEST) for value in derived.values)
        fault, contended = derived.fault, derived.contended
    elif metric.probe is not None:
        values = _measured(source, metric)
        fault, contended = _fault(source, metric), is_contended(source.outcomes.get(metric.probe))
    else:
        raise ValueError(f"{metric.name} is of a workload, not of a variant")
    known = [value for value in values if value is not None]
    interval = _summarise(metric, known, source.settings)
    if interval is None and fault is None:
        fault = Fault(Lack.NO_VALUE, metric.name, metric.probe)
    return Reading(
        metric=metric,
        values=values,
        interval=interval,
        exact=metric.exact and len(set(known)) == 1,
        contended=contended,
        fault=fault,
    )


def is_contended(outcome: Outcome | None) -> bool:
    """Whether some launches of a timing had too few undisturbed blocks."""
    return outcome is not None and isinstance(outcome.details, TimingDetails) and outcome.details.contended > 0


def is_wrong(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether any probe found a wrong result; such a variant has no speed."""
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


def _measured(source: Readable, metric: Metric) -> tuple[float | None, ...]:
    """What the probe recorded, without what cannot have been measured."""
    outcome = source.outcomes.get(metric.probe or "")
    if outcome is None:
        return ()
    if metric.summary is Summary.LAUNCHES and (outcome.status is not Status.OK or is_wrong(source.outcomes)):
        return ()
    low, high = _limits(metric)
    return tuple(_between(value, low, high) for value in outcome.values.get(metric.name, ()))


def _limits(metric: Metric) -> tuple[float, float]:
    if metric.unit is Unit.SECONDS:
        return SHORTEST_S, LONGEST_S
    if metric.unit is Unit.LOG_RATIO:
        return -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO
    return (-LARGEST_COUNT if metric.signed else 0.0), LARGEST_COUNT


def _fault(source: Readable, metric: Metric) -> Fault | None:
    """What became of the variant, if the metric's probe is not simply ok."""
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


def _summarise(metric: Metric, known: Sequence[float], settings: Settings) -> Interval | None:
    """The values as one number."""
    if not known:
        return None
    if metric.summary in (Summary.LAUNCHES, Summary.PROCESSES):
        looks = looks_at(settings) if metric.summary is Summary.LAUNCHES else 1
        mean = statistics.mean_interval if metric.unit is Unit.LOG_RATIO else statistics.geometric_interval
        return bound(mean, known, confidence=settings.confidence, looks=looks)
    rules: Mapping[Summary, Callable[[Sequence[float]], float]] = {
        Summary.MEDIAN: summaries.median,
        Summary.FIRST: lambda values: values[0],
        Summary.LARGEST: max,
    }
    return Interval(None, rules[metric.summary](known), None, len(known))


def looks_at(settings: Settings) -> int:
    """How often timing launches were looked at to decide whether to go on."""
    return max(1, len(settings.looks))


def bound(mean: Callable[..., Interval], values: Sequence[float], *, confidence: float, looks: int) -> Interval:
    """The mean with its bounds; without them where values differ by more than a float can hold."""
    try:
        return mean(values, confidence=confidence, looks=looks)
    except OverflowError:
        return mean([summaries.median(values)])


def _between(value: Number | None, low: float, high: float) -> float | None:
    # Compared before it is converted, since a count in a damaged file may be larger than any float.
    return float(value) if value is not None and low <= value <= high else None


def usable_size(value: Number | None) -> float | None:
    """A size or count as it may have been recorded, else None: of what is no metric, such as a buffer."""
    return _between(value, 0.0, LARGEST_COUNT)
