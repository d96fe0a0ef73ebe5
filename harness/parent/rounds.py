"""When the rounds of a case end: enough processes have looked at the same, or they have taken too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.plan.settings import CASE_LIMIT_S
from harness.record import Number, Outcome, Settings
from harness.record.statistics import FEWEST_LAUNCHES, Interval, geometric_interval, speedup

COLD_SHARE, MOST_COLD_SHARE = 1 / 3, 1.5
"""Cold processes are cut to three rounds, the fewest that give an interval, beyond this share of the case's time for
timing; and to fewer beyond the other, of what any case of the level may take."""

BEHIND = 1 / 3
"""Of what any case may take. Where a case's share is less, the run is late: the next case comes before an interval."""


def are_cold_rounds_over(rounds: int, elapsed_s: float, share_s: float, settings: Settings) -> bool:
    """Whether the cold processes of a case end here, before those that were planned are done.

    Args:
      rounds: How many are done, at least 1.
      elapsed_s: What they took.
      share_s: The case's share of the run's budget.
    """
    if settings.launches is not None:
        return False
    limit_s = min(settings.case_limit_s, share_s)
    if rounds >= FEWEST_LAUNCHES:
        return elapsed_s > COLD_SHARE * limit_s
    of_any_s = CASE_LIMIT_S[settings.level]
    late = share_s < BEHIND * of_any_s
    return elapsed_s > MOST_COLD_SHARE * (limit_s if late else max(limit_s, of_any_s))


def are_launches_over(
    rounds: int, elapsed_s: float, limit_s: float, settings: Settings, timings: Iterable[Outcome]
) -> bool:
    """Whether a case has been timed often enough, or long enough, before the launches that were planned are done.

    Args:
      rounds: How many launches are done, at least 1.
      elapsed_s: What they took.
      limit_s: What they may take.
      timings: Of the case's variants.
    """
    if settings.launches is not None:
        return False
    if rounds in settings.looks and are_precise(timings, settings):
        return True
    return rounds >= FEWEST_LAUNCHES and elapsed_s > limit_s


def are_precise(timings: Iterable[Outcome], settings: Settings) -> bool:
    """Whether every ratio's interval is as narrow as wanted; the times' own where there is no ratio."""
    confidence, looks, timings = settings.confidence, len(settings.looks), tuple(timings)
    ratios, times = _values_of(timings, "log_ratio"), _values_of(timings, "execution_s")
    intervals = [speedup(values, confidence=confidence, looks=looks) for values in ratios]
    if not intervals:
        intervals = [geometric_interval(values, confidence=confidence, looks=looks) for values in times]
    return all(_is_narrow(interval, settings.target_half_width) for interval in intervals)


def _values_of(timings: Sequence[Outcome], metric: str) -> list[list[Number]]:
    """Each variant's values of a timing metric, without the missing ones."""
    known = [[value for value in timing.values.get(metric, ()) if value is not None] for timing in timings]
    return [values for values in known if values]


def _is_narrow(interval: Interval, target: float) -> bool:
    return interval.half_width is not None and interval.half_width <= target
